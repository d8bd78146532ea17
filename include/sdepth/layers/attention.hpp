// SPDX-License-Identifier: MIT
// Causal softmax attention with grouped queries: tensors, work, state. Rank 2.
#pragma once

#include <string_view>

#include "sdepth/choices.hpp"
#include "sdepth/layer.hpp"

namespace sdepth::inline v0 {

struct attention_policy {
    qk_norm norm = qk_norm::per_head;
    bool rotary = true;          ///< rotary phases at original positions
    double rotary_base = 1e6;    ///< Qwen3's
    long long window = 0;        ///< keys that a query sees at most, itself included; 0 = all earlier ones
    bool biases = false;         ///< a bias in each projection
    double norm_epsilon = 1e-6;  ///< of the query and key norms

    friend constexpr bool operator==(const attention_policy&, const attention_policy&) = default;
};

/// o_i = W_o softmax_j<=i(q_i . k_j / sqrt(h)) v_j, with H query heads on Hkv key and value heads.
template <attention_policy P = attention_policy{}>
struct Attention {
    static constexpr attention_policy policy = P;
    static constexpr std::string_view name = "attention";
    static constexpr bool causal = true;

    static constexpr tensor_rows tensors(const Dims& d) {
        const long long queries = d.heads * d.head_dim;
        const long long keys = d.kv() * d.head_dim;
        tensor_rows rows;
        rows.add(matrix("self_attn.q_proj.weight", role::query, queries, d.width));
        rows.add(matrix("self_attn.k_proj.weight", role::key, keys, d.width));
        rows.add(matrix("self_attn.v_proj.weight", role::value, keys, d.width));
        rows.add(matrix("self_attn.o_proj.weight", role::output, d.width, queries));
        if (policy.biases) {
            rows.add(vector("self_attn.q_proj.bias", role::bias, queries, {init_kind::zeros, 0}));
            rows.add(vector("self_attn.k_proj.bias", role::bias, keys, {init_kind::zeros, 0}));
            rows.add(vector("self_attn.v_proj.bias", role::bias, keys, {init_kind::zeros, 0}));
            rows.add(vector("self_attn.o_proj.bias", role::bias, d.width, {init_kind::zeros, 0}));
        }
        if (policy.norm != qk_norm::none) {
            const bool per_head = policy.norm == qk_norm::per_head;
            rows.add(
                vector("self_attn.q_norm.weight", role::norm, per_head ? d.head_dim : queries, {init_kind::ones, 1}));
            rows.add(vector("self_attn.k_norm.weight", role::norm, per_head ? d.head_dim : keys, {init_kind::ones, 1}));
        }
        return rows;
    }

    static constexpr mixing_work mixing(const Dims& d) {
        return {.per_pair = 2 * d.heads * d.head_dim, .window = policy.window};
    }

    static constexpr state_size state(const Dims& d) { return {.kv_row = 2 * d.kv() * d.head_dim}; }

    static constexpr verdict check(const Dims& d) {
        using detail::require;
        using detail::require_size;
        return detail::first_broken(
            require_size(d.heads, size_name::heads), require_size(d.head_dim, size_name::head_dim),
            require_size(d.kv(), size_name::kv_heads),
            require(detail::divides(d.kv(), d.heads), rule::kv_heads_divide_heads, d.heads, d.kv()),
            require(!policy.rotary || d.head_dim % 2 == 0, rule::rotary_head_dim_is_even, d.head_dim),
            require(policy.window >= 0, rule::window_not_negative, policy.window),
            detail::require_bound(policy.window, size_name::window),
            policy.rotary ? detail::require_positive(policy_name::rotary_base, policy.rotary_base) : verdict{},
            detail::require_choice(policy_name::norm, policy.norm, qk_norm::full_width),
            policy.norm != qk_norm::none ? detail::require_positive(policy_name::norm_epsilon, policy.norm_epsilon)
                                         : verdict{});
    }

    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        sink.function("mask", "causal");
        sink.function("window, 0 = all", policy.window);
        sink.function("query heads", d.heads);
        sink.function("key and value heads", d.kv());
        sink.function("head width", d.head_dim);
        sink.function("score", "q . k / sqrt(head width)");
        sink.function("query and key norm", name_of(policy.norm));
        if (policy.norm != qk_norm::none) sink.function("query and key norm epsilon", policy.norm_epsilon);
        sink.function("rotary phases", policy.rotary);
        if (policy.rotary) sink.function("rotary base", policy.rotary_base);
        sink.function("positions", "original");
        sink.function("attention biases", policy.biases);
    }
};

}  // namespace sdepth::inline v0
