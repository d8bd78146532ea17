// SPDX-License-Identifier: MIT
// Rotary phases on heads of an odd width.
// expect: sdepth: rotary phases need an even head_dim: change it or set .rotary = false
// numbers: rotary_head_dim_is_even 1 15
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = layer<Attention<attention_policy{.rotary = false}>, SwiGLU<>>;
using M = Model<formula, with(&Dims::head_dim, 15)>;
#else
constexpr auto formula = dense;
using M = Model<formula, with(&Dims::head_dim, 15)>;
#endif
static_assert(counted_as_usual<M, 1>());
