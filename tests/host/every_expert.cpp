// SPDX-License-Identifier: MIT
// Expert layers of every choice and limit, and depth attention with slots of every source and bound, some under sparse
// depth.
#include "host/every_layer.hpp"

using namespace every_layer;

namespace {

template <moda_policy P>
constexpr auto deep = layer<DepthAttention<P>, SwiGLU<>>;
constexpr auto limited = Experts<4, 2, moe_policy{.shared = 1, .capacity = 0.8, .excess = overflow::skip}>{};
constexpr auto slots_and_experts = layer<DepthAttention<>, std::remove_cvref_t<decltype(limited)>>;
constexpr auto dropless = moe<5, 2, moe_policy{.steering = true}>;
constexpr auto noisy = moe<4, 2, moe_policy{.capacity = 1, .excess = overflow::reroute, .noisy = true}>;
using Slots = Model<deep<moda_policy{.attention = attention_slot::projected}> + moda + sparse<2>(slots_and_experts) +
                        deep<moda_policy{.slots = 3, .choice = slot_choice::mixed, .joint = false}> +
                        sparse<2>(dropless) + noisy + moda_last,
                    odd>;

constexpr auto by_expert = moe<4, 2, moe_policy{.choice = expert_choice::by_expert, .loss = balance::none}>;
constexpr auto balanced = moe<4, 1,
                              moe_policy{.score = expert_score::sigmoid,
                                         .renormalise = false,
                                         .choice = expert_choice::balanced,
                                         .loss = balance::none}>;
using Choosing = Model<by_expert + balanced, odd>;

}  // namespace

TEST_CASE("slots and experts train and evaluate in single precision; a replay changes no bit") {
    const auto gradients = trains<Slots, kept>(optimiser::adamw);
    CHECK(trains<Slots, partly_replayed>(optimiser::muon) == gradients);
}

TEST_CASE("slots and experts decode in single precision") { decodes<Slots>(); }

TEST_CASE("experts that choose train in single precision") { trains<Choosing, kept>(optimiser::adamw); }
