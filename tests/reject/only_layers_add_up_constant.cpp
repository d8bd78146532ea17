// SPDX-License-Identifier: MIT
// A compile-time constant added to a formula.
// expect: sdepth: only layers and formulas add up
// expect: only_layers_add_up
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense * 4_c + dense * 3_c;
#else
constexpr auto formula = dense * 4_c + 3_c;
#endif
using M = Model<formula, small>;
static_assert(params<M>.total > 0);
