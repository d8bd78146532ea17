// SPDX-License-Identifier: MIT
// A formula times a formula.
// expect: sdepth: formulas do not multiply: write a \+ b, or a \* 4_c to repeat a
// expect: formulas_do_not_multiply
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + mamba;
#else
constexpr auto formula = dense * mamba;
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 2>());
static_assert(params<M>.total == 102'560);
