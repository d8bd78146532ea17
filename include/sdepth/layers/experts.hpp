// SPDX-License-Identifier: MIT
// Mixture of experts: a feed-forward part of E routed experts of which each row uses k, and shared ones. Rank 2.
#pragma once

#include <string_view>

#include "sdepth/layer.hpp"
#include "sdepth/layers/block.hpp"

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
/// What happens to an assignment beyond an expert's capacity.
enum class overflow { skip, reroute, defer };
/// Balance loss of the router.
enum class balance {
    none,
    top_one,          ///< E sum f q, f from the arg max (Switch)
    top_k,            ///< the same with f over all k choices, divided by k: 1.0 is perfect (D-32)
    per_sequence,     ///< top_k for each sequence, then the mean (DeepSeek-V3)
    importance_load,  ///< squared coefficients of variation of importance and load (Shazeer et al. 2017)
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

/// The router of the X-MoD paper's baselines (D-20): sigmoid scores renormalised, bias steering, sequence loss 1e-4.
inline constexpr moe_policy steered_policy{.score = expert_score::sigmoid,
                                           .order = score_order::score_then_choose,
                                           .shared = 2,
                                           .steering = true,
                                           .loss = balance::per_sequence,
                                           .loss_weight = 1e-4};
/// Switch Transformer: one expert, weighted by its softmax probability, capacity 1.25, excess skipped.
inline constexpr moe_policy switch_policy{
    .order = score_order::score_then_choose, .renormalise = false, .loss = balance::top_one, .capacity = 1.25};

/// m = sum_e g_e F_e(x) over the k chosen of E experts, F_e a SwiGLU of hidden width `expert_ffn`, plus shared experts.
template <long long E, long long K, moe_policy P = moe_policy{}>
struct Experts {
    static constexpr moe_policy policy = P;
    static constexpr long long experts = E;
    static constexpr long long chosen = K;
    static constexpr std::string_view name = "experts";
    static constexpr bool causal = P.choice == expert_choice::by_token;

    static constexpr long long shared_width(const Dims& d) { return P.shared_ffn == 0 ? d.expert_ffn : P.shared_ffn; }

    static constexpr tensor_rows tensors(const Dims& d) {
        tensor_rows rows;
        tensor_row router = matrix("mlp.router.weight", role::expert_router, E, d.width);
        router.group = update_group::adamw;
        rows.add(router);
        if (P.noisy) {
            router.name = "mlp.router_noise.weight";
            router.start = {init_kind::zeros, 0};
            rows.add(router);
        }
        if (P.steering) {
            tensor_row bias = vector("mlp.router.bias", role::expert_bias, E, {init_kind::zeros, 0});
            bias.trained = false;
            rows.add(bias);
        }
        const ratio share = E > 0 && K > 0 ? ratio(K, E) : ratio(1);
        add_experts(
            rows, E, share, sharding::by_expert, d.width, d.expert_ffn,
            {"mlp.experts.{e}.gate_proj.weight", "mlp.experts.{e}.up_proj.weight", "mlp.experts.{e}.down_proj.weight"});
        if (P.shared > 0) {
            add_experts(rows, P.shared, 1, sharding::replicated, d.width, shared_width(d),
                        {"mlp.shared_experts.{e}.gate_proj.weight", "mlp.shared_experts.{e}.up_proj.weight",
                         "mlp.shared_experts.{e}.down_proj.weight"});
        }
        return rows;
    }
    static constexpr verdict check(const Dims& d) {
        using detail::require;
        return detail::first_broken(
            require(1 <= K && K <= E, rule::experts_within_range, K, E),
            require(K != 1 || !P.renormalise, rule::top_one_not_renormalised, E),
            require(P.capacity >= 0, rule::capacity_not_negative, E),
            detail::require_size(d.expert_ffn, size_name::expert_ffn),
            require(P.shared >= 0 && shared_width(d) > 0, rule::size_not_positive,
                    static_cast<long long>(size_name::shared_ffn), P.shared < 0 ? P.shared : shared_width(d)));
    }

    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        sink.function("experts", E);
        sink.function("experts per token", K);
        sink.function("expert width", d.expert_ffn);
        sink.function("shared experts, ungated", P.shared);
        sink.function("shared expert width", shared_width(d));
        sink.function("choice", name_of(P.choice));
        sink.function("score", name_of(P.score));
        sink.function("score order", name_of(P.order));
        sink.function("ties", "lower expert");
        sink.function("renormalised", P.renormalise);
        sink.function("routed weight scale", P.weight_scale);
        sink.function("combine", "sum in order of choice, input order kept");
        sink.function("steering bias", P.steering);
        sink.function("noisy logits in training", P.noisy);
        if (P.choice == expert_choice::by_expert) {
            sink.function("capacity factor", P.capacity);
        } else {
            sink.record("capacity factor in training, 0 = dropless", P.capacity);
        }
        sink.record("overflow in training", name_of(P.excess));
        sink.record("routing group", "the rows of one micro-batch");
        sink.record("router precision", "f32");
        sink.record("steering rule", P.steering ? "bias += step x sign(mean load - load) once a step" : "none");
        sink.record("steering step", P.steering_step);
        sink.record("balance loss", name_of(P.loss));
        sink.record("balance loss equation", equation_of(P.loss));
        sink.record("balance loss weight", P.loss_weight);
        sink.record("z-loss equation", "weight x mean over rows of logsumexp(logits)^2");
        sink.record("z-loss weight", P.z_loss_weight);
    }

  private:
    struct expert_names {
        std::string_view gate, up, down;
    };
    static constexpr void add_experts(tensor_rows& rows, long long copies, ratio share, sharding split, long long width,
                                      long long hidden, expert_names names) {
        tensor_row each[] = {matrix(names.gate, role::gate, hidden, width), matrix(names.up, role::up, hidden, width),
                             matrix(names.down, role::down, width, hidden)};
        for (tensor_row& row : each) {
            row.copies = copies;
            row.active = share;
            row.split = split;
            rows.add(row);
        }
    }
};

/// Attention and experts: `moe<64, 6>` routes each token to 6 of 64.
template <long long E, long long K, moe_policy P = moe_policy{}>
inline constexpr Block<Attention<>, Experts<E, K, detail::evaluated(P)>> moe{};

}  // namespace sdepth::inline v0
