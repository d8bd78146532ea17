// SPDX-License-Identifier: MIT
// A loop of nothing yet in a sum.
// expect: sdepth: a loop takes a formula: write loop<2>\(dense \* 4_c\), the passes in < >
// expect: loop_takes_a_formula
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + loop<2>(mamba);
#else
constexpr auto formula = dense + loop<2>;
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
