// SPDX-License-Identifier: MIT
// More than all of a tensor; in millionths.
// expect: sdepth: this number of a layer's tensors, mixing or state is out of range: see docs/diagnostics.md
// expect: layer_number::tensor_active
// numbers: layer_within_range 2 1500000
#include "own_layer.hpp"

struct Pool : OwnLayer {
    static constexpr tensor_rows tensors(const Dims& d) {
        tensor_rows rows = OwnLayer::tensors(d);
#ifdef TWIN
        rows.begin()->active = ratio(2, 2);
#else
        rows.begin()->active = ratio(3, 2);
#endif
        return rows;
    }
};

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
