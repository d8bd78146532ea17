// SPDX-License-Identifier: MIT
// A choice of a policy that is none of its enumerators.
// expect: sdepth: this number or choice of a policy is out of its range
// expect: policy_name::choice
// numbers: policy_within_range 2 9000000
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + moe<4, 2, moe_policy{.choice = static_cast<expert_choice>(0)}>;
using M = Model<formula, small>;
#else
constexpr auto formula = dense + moe<4, 2, moe_policy{.choice = static_cast<expert_choice>(9)}>;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 2>());
