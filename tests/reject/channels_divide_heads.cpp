// SPDX-License-Identifier: MIT
// Channels of Mamba-2 that its heads do not divide.
// expect: sdepth: channels must divide evenly into heads, and heads into groups: change the policy's sizes
// numbers: channels_divide_heads 2 128 48
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + layer<Mamba2<mamba2_policy{.head_dim = 32}>, None>;
using M = Model<formula, small>;
#else
constexpr auto formula = dense + layer<Mamba2<mamba2_policy{.head_dim = 48}>, None>;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 2>());
