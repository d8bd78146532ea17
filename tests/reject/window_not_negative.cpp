// SPDX-License-Identifier: MIT
// An attention window below zero.
// expect: sdepth: a window or slot bound must not be negative: 0 means all
// numbers: window_not_negative 2 -8
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + layer<Attention<attention_policy{.window = 8}>, SwiGLU<>>;
using M = Model<formula, small>;
#else
constexpr auto formula = dense + layer<Attention<attention_policy{.window = -8}>, SwiGLU<>>;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 2>());
