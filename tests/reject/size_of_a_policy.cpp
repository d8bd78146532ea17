// SPDX-License-Identifier: MIT
// A policy's size that divides others must not be zero.
// expect: sdepth: this size must be positive
// numbers: size_not_positive 2
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + layer<Mamba2<mamba2_policy{.head_dim = 32}>, None>;
using M = Model<formula, small>;
#else
constexpr auto formula = dense + layer<Mamba2<mamba2_policy{.head_dim = 0}>, None>;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 2>());
