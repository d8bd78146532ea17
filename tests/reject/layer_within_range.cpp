// SPDX-License-Identifier: MIT
// A tensor for a role that there is none of.
// expect: sdepth: this number of a layer's tensors, mixing or state is out of range: see docs/diagnostics.md
// expect: Pool
// expect: layer_number::tensor_role
// numbers: layer_within_range 2 77
#include "own_layer.hpp"

struct Pool : OwnLayer {
    static constexpr tensor_rows tensors(const Dims& d) {
        tensor_rows rows = OwnLayer::tensors(d);
#ifdef TWIN
        rows.begin()->use = role::bias;
#else
        rows.begin()->use = static_cast<role>(77);
#endif
        return rows;
    }
};

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
