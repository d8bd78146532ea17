// SPDX-License-Identifier: MIT
// The choices of an expert layer's router, as enumerations and one aggregate. No layer and no arithmetic but the
// capacity. Rank 1.
#pragma once

#include <string_view>

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

/// How router logits become affinities.
enum class expert_score { softmax, sigmoid };
/// Whether the score function sees the chosen logits only, or all of them (softmax; for sigmoid they are the same).
enum class score_order { choose_then_score, score_then_choose };
/// Who chooses whom.
enum class expert_choice {
    by_token,   ///< each row takes its k best experts
    by_expert,  ///< each expert takes its best rows (Expert Choice); not causal
    balanced    ///< linear assignment, equal shares (BASE); not causal
};
/// What happens to an assignment beyond an expert's capacity. First choices are served before second ones, lower rows
/// before higher ones.
enum class overflow {
    skip,     ///< it is dropped
    reroute,  ///< it goes to the row's best other expert with room; dropped if there is none
    defer     ///< it waits for another round of the same expert: nothing is dropped
};
/// Balance loss of the router.
enum class balance {
    none,
    top_one,          ///< E sum f q, f from the arg max (Switch)
    top_k,            ///< the same with f over all k choices, divided by k: 1.0 is perfect
    per_sequence,     ///< top_k for each sequence, then the mean (DeepSeek-V3)
    importance_load,  ///< squared coefficients of variation of importance and load (Shazeer et al. 2017); 0 at best
};

constexpr std::string_view name_of(expert_score s) { return s == expert_score::softmax ? "softmax" : "sigmoid"; }
constexpr std::string_view name_of(score_order o) {
    return o == score_order::choose_then_score ? "choose, then score" : "score, then choose";
}
constexpr std::string_view name_of(expert_choice c) {
    constexpr std::string_view names[] = {"by token", "by expert", "balanced"};
    return names[static_cast<int>(c)];
}
constexpr std::string_view name_of(overflow o) {
    constexpr std::string_view names[] = {"skip", "reroute", "defer"};
    return names[static_cast<int>(o)];
}
constexpr std::string_view name_of(balance b) {
    constexpr std::string_view names[] = {"none", "top one", "top k", "per sequence", "importance and load"};
    return names[static_cast<int>(b)];
}

/// The loss: f is the share of assignments and q the mean probability of an expert; E sum f q is 1 at best.
constexpr std::string_view equation_of(balance b) {
    constexpr std::string_view equations[] = {
        "none",
        "E sum f q, f of the arg max",
        "E sum f q, f of all choices over k",
        "E sum f q of each sequence, f of all choices over k, then the mean",
        "CV(importance)^2 + CV(load)^2",
    };
    return equations[static_cast<int>(b)];
}

struct moe_policy {
    expert_score score = expert_score::softmax;
    score_order order = score_order::choose_then_score;
    bool renormalise = true;   ///< weights of the chosen experts sum to 1
    double weight_scale = 1;   ///< factor on the routed output
    long long shared = 0;      ///< experts that always run, added without a gate
    long long shared_ffn = 0;  ///< hidden width of a shared expert; 0 = as a routed one
    expert_choice choice = expert_choice::by_token;
    bool steering = false;  ///< a bias per expert, from recent load, for the choice only (DeepSeek-V3)
    double steering_step = 1e-3;
    balance loss = balance::top_k;
    double loss_weight = 1e-2;
    double z_loss_weight = 0;  ///< router z-loss (ST-MoE)
    double capacity = 0;       ///< capacity factor c, ceil(c k T / E) rows an expert; 0 = dropless
    overflow excess = overflow::skip;
    bool noisy = false;  ///< learned Gaussian noise on the logits in training (Shazeer et al. 2017)

    friend constexpr bool operator==(const moe_policy&, const moe_policy&) = default;
};

/// The router of the X-MoD paper's baselines: sigmoid scores renormalised, bias steering, sequence loss 1e-4. The paper
/// names only the models that it follows, Qwen3 and Kimi K3; the numbers are ours.
inline constexpr moe_policy steered_policy{.score = expert_score::sigmoid,
                                           .order = score_order::score_then_choose,
                                           .shared = 2,
                                           .steering = true,
                                           .loss = balance::per_sequence,
                                           .loss_weight = 1e-4};
/// Switch Transformer: one expert, weighted by its softmax probability, capacity 1.25, excess skipped.
inline constexpr moe_policy switch_policy{
    .order = score_order::score_then_choose, .renormalise = false, .loss = balance::top_one, .capacity = 1.25};

/// Rows that one expert may take of a routing group of `rows` rows: ceil(c k T / E). The product is rounded first, so
/// that a factor such as 1.1 does not add a row by its last bit.
SDEPTH_HOST_DEVICE constexpr long long expert_capacity(double factor, long long chosen, long long rows,
                                                       long long experts) {
    const double exact = factor * static_cast<double>(chosen * rows) / static_cast<double>(experts);
    const auto whole = static_cast<long long>(exact);
    return exact - static_cast<double>(whole) > 1e-9 * exact ? whole + 1 : whole;
}

}  // namespace sdepth::inline v0
