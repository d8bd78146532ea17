// SPDX-License-Identifier: MIT
// A formula added to a compile-time constant.
// expect: sdepth: only layers and formulas add up: write \+ dense, or \* 3_c to repeat
// expect: only_layers_add_up
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = 3_c * dense + dense * 4_c;
#else
constexpr auto formula = 3_c + dense * 4_c;
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 7>());
static_assert(params<M>.total == 292'000);
