// SPDX-License-Identifier: MIT
// Logits of a model whose experts choose their rows.
// expect: sdepth: this layer's router sees the future: causal evaluation needs expert_choice::by_token
// numbers: non_causal_router 2 1
#include "formula.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "sdepth/pipeline.hpp"

#ifdef TWIN
constexpr auto formula = dense + moe<4, 2>;
#else
constexpr auto formula = dense + moe<4, 2, moe_policy{.choice = expert_choice::balanced}>;
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 2>());

void ask(pipeline<M, host<float>, Run{.seq = 8}>& model, const batch_view& batch) { (void)model.logits(batch); }
