// SPDX-License-Identifier: MIT
// A formula and a constant under a logical operator, which Boost.Hana has too.
// expect: sdepth: formulas know \+ and \* alone: write a \+ b, a \* 4_c or loop<2>\(a\)
// expect: formulas_add_and_repeat
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense * 4_c;
#else
constexpr auto formula = dense * 8_c && 2_c;
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 4>());
