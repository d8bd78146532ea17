// SPDX-License-Identifier: MIT
// A layer of one's own with more tensors than a layer may have.
// expect: sdepth: a layer has more tensors than tensor_rows holds
// expect: Wide
// numbers: tensor_rows_fit 2 33 32
#include "own_layer.hpp"

struct Wide : OwnLayer {
    static constexpr tensor_rows tensors(const Dims& d) {
#ifdef TWIN
        constexpr std::size_t tensors = 32;
#else
        constexpr std::size_t tensors = 33;
#endif
        constexpr std::string_view names = "abcdefghijklmnopqrstuvwxyzABCDEFG";
        tensor_rows rows;
        for (std::size_t i = 0; i < tensors; ++i) rows.add(matrix(names.substr(i, 1), role::output, d.width, d.width));
        return rows;
    }
};

constexpr auto formula = dense + Wide{};
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 2>());
