// SPDX-License-Identifier: MIT
// A number added to a formula.
// expect: sdepth: only layers and formulas add up: write \+ dense, or \* 3_c to repeat
// expect: only_layers_add_up
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense * 4_c + dense * 3_c;
#else
constexpr auto formula = dense * 4_c + 3;
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 7>());
static_assert(params<M>.total == 292'000);
