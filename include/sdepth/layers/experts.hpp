// SPDX-License-Identifier: MIT
// Mixture of experts: a feed-forward part of E routed experts of which each row uses k, and shared ones. Rank 2.
#pragma once

#include <string_view>

#include "sdepth/layer.hpp"
#include "sdepth/layers/block.hpp"
#include "sdepth/layers/expert_policy.hpp"

namespace sdepth::inline v0 {

/// m = sum_e g_e F_e(x) over the k chosen of E experts, F_e a SwiGLU of hidden width `expert_ffn`, plus shared experts.
template <long long E, long long K, moe_policy P = moe_policy{}>
struct Experts {
    static constexpr moe_policy policy = P;
    static constexpr long long experts = E;
    static constexpr long long chosen = K;
    static constexpr std::string_view name = "experts";
    static constexpr bool causal = policy.choice == expert_choice::by_token;

    static constexpr long long shared_width(const Dims& d) {
        return policy.shared_ffn == 0 ? d.expert_ffn : policy.shared_ffn;
    }

    static constexpr tensor_rows tensors(const Dims& d) {
        tensor_rows rows;
        tensor_row router = matrix("mlp.router.weight", role::expert_router, E, d.width);
        router.group = update_group::adamw;
        rows.add(router);
        if (policy.noisy) {
            router.name = "mlp.router_noise.weight";
            router.start = {init_kind::zeros, 0};
            rows.add(router);
        }
        if (policy.steering) {
            tensor_row bias = vector("mlp.router.bias", role::expert_bias, E, {init_kind::zeros, 0});
            bias.trained = false;
            rows.add(bias);
        }
        const ratio share = E > 0 && K > 0 ? ratio(K, E) : ratio(1);
        add_experts(
            rows, E, share, sharding::by_expert, d.width, d.expert_ffn,
            {"mlp.experts.{e}.gate_proj.weight", "mlp.experts.{e}.up_proj.weight", "mlp.experts.{e}.down_proj.weight"});
        if (policy.shared > 0) {
            add_experts(rows, policy.shared, 1, sharding::replicated, d.width, shared_width(d),
                        {"mlp.shared_experts.{e}.gate_proj.weight", "mlp.shared_experts.{e}.up_proj.weight",
                         "mlp.shared_experts.{e}.down_proj.weight"});
        }
        return rows;
    }
    static constexpr verdict check(const Dims& d) {
        using detail::require;
        using detail::require_not_negative;
        using detail::require_size;
        return detail::first_broken(
            require(1 <= K && K <= E, rule::experts_within_range, K, E), detail::require_bound(E, size_name::experts),
            require(K != 1 || !constant_alone, rule::top_one_not_renormalised, E),
            require_size(d.expert_ffn, size_name::expert_ffn),
            require_not_negative(policy_name::shared, static_cast<double>(policy.shared)),
            detail::require_bound(policy.shared, size_name::shared_experts),
            require_size(shared_width(d), size_name::shared_ffn),
            detail::require_up_to(largest_capacity, policy_name::capacity, policy.capacity),
            detail::require_positive(policy_name::weight_scale, policy.weight_scale),
            require_not_negative(policy_name::steering_step, policy.steering_step),
            require_not_negative(policy_name::loss_weight, policy.loss_weight),
            require_not_negative(policy_name::z_loss_weight, policy.z_loss_weight), check_choices());
    }

    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        sink.function("experts", E);
        sink.function("experts per token", K);
        sink.function("expert width", d.expert_ffn);
        sink.function("shared experts, ungated", policy.shared);
        if (policy.shared > 0) sink.function("shared expert width", shared_width(d));
        sink.function("choice", name_of(policy.choice));
        sink.function("score", name_of(policy.score));
        if (policy.score == expert_score::softmax) sink.function("score order", name_of(policy.order));
        sink.function("ties", "lower expert");
        sink.function("renormalised", policy.renormalise);
        sink.function("routed weight scale", policy.weight_scale);
        sink.function("combine", "sum in order of choice, input order kept");
        sink.function("steering bias", policy.steering);
        sink.function("noisy logits in training", policy.noisy);
        if (policy.choice == expert_choice::by_expert) {
            sink.function("capacity factor", policy.capacity);
        } else {
            sink.record("capacity factor in training, 0 = dropless", policy.capacity);
        }
        sink.record("overflow in training", name_of(policy.excess));
        sink.record("routing group", "the rows of one micro-batch");
        sink.record("router precision", "f32");
        sink.record("steering rule", policy.steering ? "bias += step x sign(mean load - load) once a step" : "none");
        sink.record("steering step", policy.steering_step);
        sink.record("balance loss", name_of(policy.loss));
        sink.record("balance loss equation", equation_of(policy.loss));
        sink.record("balance loss weight", policy.loss_weight);
        sink.record("z-loss equation", "weight x mean over rows of logsumexp(logits)^2");
        sink.record("z-loss weight", policy.z_loss_weight);
    }

  private:
    // Times the rows of a micro-batch it still fits a whole number.
    static constexpr double largest_capacity = 1 << 20;

    static constexpr verdict check_choices() {
        using detail::require_choice;
        return detail::first_broken(require_choice(policy_name::score, policy.score, expert_score::sigmoid),
                                    require_choice(policy_name::order, policy.order, score_order::score_then_choose),
                                    require_choice(policy_name::choice, policy.choice, expert_choice::balanced),
                                    require_choice(policy_name::loss, policy.loss, balance::importance_load),
                                    require_choice(policy_name::excess, policy.excess, overflow::defer));
    }
    // The weight of a single choice is 1 whatever its logit, so the router would learn nothing.
    static constexpr bool constant_alone =
        policy.renormalise || (policy.score == expert_score::softmax && policy.order == score_order::choose_then_score);

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
