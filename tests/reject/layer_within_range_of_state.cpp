// SPDX-License-Identifier: MIT
// A negative row of keys and values.
// expect: sdepth: this number of a layer's tensors, mixing or state is out of range: see docs/diagnostics.md
// expect: layer_number::kv_row
// numbers: layer_within_range 2 -3
#include "own_layer.hpp"

struct Pool : OwnLayer {
#ifdef TWIN
    static constexpr state_size state(const Dims&) { return {.kv_row = 3}; }
#else
    static constexpr state_size state(const Dims&) { return {.kv_row = -3}; }
#endif
};

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
