// SPDX-License-Identifier: MIT
// Sparse depth called without a layer.
// expect: sdepth: sparse wraps one layer: write sparse<4>\(a\) \+ sparse<4>\(b\), or sparse<4>\(a\) \* 2_c
// expect: sparse_wraps_one_layer
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = sparse<4> + dense;
#else
constexpr auto formula = sparse<4>() + dense;
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 2>());
