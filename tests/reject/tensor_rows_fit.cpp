// SPDX-License-Identifier: MIT
// A layer of one's own with more tensors than a layer may have.
// expect: sdepth: a layer has more tensors than tensor_rows holds
// expect: Wide
// numbers: tensor_rows_fit 2 33 32
#include "own_layer.hpp"

struct Wide : OwnLayer {
    static constexpr tensor_rows tensors(const Dims& d) {
#ifdef TWIN
        constexpr int tensors = 32;
#else
        constexpr int tensors = 33;
#endif
        tensor_rows rows;
        for (int i = 0; i < tensors; ++i) rows.add(matrix("weight", role::output, d.width, d.width));
        return rows;
    }
};

constexpr auto formula = dense + Wide{};
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 2>());
