// SPDX-License-Identifier: MIT
// A loop of a number.
// expect: sdepth: a loop takes a formula: write loop<2>\(dense \* 4_c\), the passes in < >
// expect: loop_takes_a_formula
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = loop<2>(dense * 4_c);
#else
constexpr auto formula = loop<2>(4);
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 8>());
static_assert(params<M>.total == 180'928);
