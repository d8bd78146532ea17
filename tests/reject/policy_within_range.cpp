// SPDX-License-Identifier: MIT
// A capacity factor below zero.
// expect: sdepth: a capacity factor must not be negative: 0 means dropless
// expect: capacity_not_negative
// numbers: 2 4
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + moe<4, 2, moe_policy{.capacity = 1.25}>;
using M = Model<formula, small>;
#else
constexpr auto formula = dense + moe<4, 2, moe_policy{.capacity = -1}>;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 2>());
