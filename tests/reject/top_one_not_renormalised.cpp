// SPDX-License-Identifier: MIT
// One expert, whose renormalised weight would be the constant 1.
// expect: sdepth: one expert, renormalised, has the constant weight 1: set .renormalise = false
// numbers: top_one_not_renormalised 2 4
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + moe<4, 1, switch_policy>;
using M = Model<formula, small>;
#else
constexpr auto formula = dense + moe<4, 1>;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 2>());
