// SPDX-License-Identifier: MIT
// Sparse depth around a sum.
// expect: sdepth: sparse wraps one layer: write sparse<4>\(a\) \+ sparse<4>\(b\), or sparse<4>\(a\) \* 2_c
// expect: sparse_wraps_one_layer.*Stack
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = sparse<4>(dense) + sparse<4>(mamba) + dense;
#else
constexpr auto formula = sparse<4>(dense + mamba) + dense;
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
static_assert(params<M>.total == 139'714);
