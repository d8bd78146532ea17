// SPDX-License-Identifier: MIT
// Sparse layers at the end, whose bias no anchor clears.
// expect: sdepth: no anchor follows these sparse layers: add \+ dense, or set .clear_every or .bias = false
// numbers: sparse_needs_anchor 8 4
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense * 2_c + (sparse<4> * 4_c + dense) + sparse<4, sparse_policy{.clear_every = 4}> * 4_c;
using M = Model<formula, small>;
#else
constexpr auto formula = dense * 2_c + (sparse<4> * 4_c + dense) + sparse<4> * 4_c;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 11>());
