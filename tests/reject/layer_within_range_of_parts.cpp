// SPDX-License-Identifier: MIT
// A tensor of two logical matrices that are not all of its rows.
// expect: sdepth: this number of a layer's tensors, mixing or state is out of range: see docs/diagnostics.md
// expect: layer_number::tensor_parts
// numbers: layer_within_range 2 96
#include "own_layer.hpp"

struct Pool : OwnLayer {
    static constexpr tensor_rows tensors(const Dims& d) {
        tensor_rows rows;
#ifdef TWIN
        rows.add(stacked("in", role::input, {64, 32}, d.width));
#else
        rows.add(stacked("in", role::input, {64, 32}, d.width));
        rows.begin()->rows = 128;
#endif
        return rows;
    }
};

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
