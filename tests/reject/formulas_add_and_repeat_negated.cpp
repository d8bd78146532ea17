// SPDX-License-Identifier: MIT
// A layer with a sign.
// expect: sdepth: formulas know \+ and \* alone: write a \+ b, a \* 4_c or loop<2>\(a\)
// expect: formulas_add_and_repeat
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + mamba;
#else
constexpr auto formula = dense + -mamba;
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 2>());
