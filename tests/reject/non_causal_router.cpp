// SPDX-License-Identifier: MIT
// Experts that choose their rows, where evaluation must be causal.
// expect: sdepth: this layer's router sees the future: causal evaluation needs expert_choice::by_token
// numbers: non_causal_router 3 2
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense * 2_c + moe<4, 2> * 2_c;
using M = Model<formula, small>;
#else
constexpr auto formula = dense * 2_c + moe<4, 2, moe_policy{.choice = expert_choice::by_expert}> * 2_c;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 4>());
static_assert(require_causal<M>());
