// SPDX-License-Identifier: MIT
// A formula less a layer.
// expect: sdepth: formulas know \+ and \* alone: write a \+ b, a \* 4_c or loop<2>\(a\)
// expect: formulas_add_and_repeat
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense * 2_c;
#else
constexpr auto formula = dense * 3_c - dense;
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 2>());
