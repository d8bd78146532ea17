// SPDX-License-Identifier: MIT
// Small models with expert layers, one for each policy, for the laws.
#pragma once

#include "laws/models.hpp"

namespace laws {

inline constexpr Dims with_experts{
    .width = 12, .head_dim = 4, .heads = 4, .kv_heads = 2, .ffn = 20, .expert_ffn = 8, .vocab = 19};

template <long long E, long long K, moe_policy P>
using MoE = Model<dense + moe<E, K, P> + dense, with_experts>;

using Mixtral = Model<moe<6, 2> * 2_c, with_experts>;
using ScoreFirst =
    MoE<6, 2, moe_policy{.order = score_order::score_then_choose, .renormalise = false, .weight_scale = 1.5}>;
using Renormalised = MoE<6, 3, moe_policy{.order = score_order::score_then_choose, .z_loss_weight = 1e-2}>;
using Sigmoid =
    MoE<6, 2, moe_policy{.score = expert_score::sigmoid, .renormalise = false, .loss = balance::per_sequence}>;
using Steered = MoE<6, 2, steered_policy>;
using Switched =
    MoE<6, 1, moe_policy{.order = score_order::score_then_choose, .renormalise = false, .loss = balance::top_one}>;
using SparseExperts =
    Model<dense + sparse<2>(moe<5, 2, moe_policy{.shared = 1, .shared_ffn = 6, .z_loss_weight = 1e-2}>) * 2_c + dense,
          with_experts>;

using Skipping = MoE<6, 2, moe_policy{.shared = 1, .capacity = 0.8, .excess = overflow::skip}>;
using Rerouting = MoE<6, 2, moe_policy{.capacity = 1, .excess = overflow::reroute}>;
using Deferring = MoE<6, 2, moe_policy{.capacity = 0.8, .excess = overflow::defer}>;
using Noisy = MoE<6, 2, moe_policy{.loss = balance::importance_load, .noisy = true}>;
using Importance = MoE<6, 2, moe_policy{.loss = balance::importance_load}>;
using NoisySwitch =
    MoE<5, 1,
        moe_policy{
            .order = score_order::score_then_choose, .renormalise = false, .loss = balance::top_one, .noisy = true}>;
using ExpertChoice = MoE<4, 2,
                         moe_policy{.order = score_order::score_then_choose,
                                    .renormalise = false,
                                    .choice = expert_choice::by_expert,
                                    .loss = balance::none}>;
using Base = MoE<4, 1,
                 moe_policy{.score = expert_score::sigmoid,
                            .renormalise = false,
                            .choice = expert_choice::balanced,
                            .loss = balance::none}>;
using Hybrid =
    Model<layer<LinearAttention<>, Experts<4, 2>> +
              sparse<2>(
                  layer<Mamba2<mamba2_policy{.state = 3, .head_dim = 4}>, Experts<4, 2, moe_policy{.shared = 1}>>) +
              dense,
          with_experts>;
using LoopedExperts = Model<loop<2>(moe<3, 2, steered_policy> * 2_c) + dense, with_experts>;

using expert_models = models<Mixtral, ScoreFirst, Renormalised, Sigmoid, Steered, Switched, SparseExperts, Hybrid>;
using capacity_models = models<Skipping, Rerouting, Deferring, LoopedExperts>;
using training_models = models<Noisy, Importance, NoisySwitch, ExpertChoice, Base>;  // evaluated otherwise

}  // namespace laws
