// SPDX-License-Identifier: MIT
// The gated delta rule: a state that forgets, and corrects what it writes. Rank 2.
#pragma once

#include <string_view>

#include "sdepth/layer.hpp"
#include "sdepth/layers/block.hpp"
#include "sdepth/layers/recurrence.hpp"

namespace sdepth::inline v0 {

struct gated_delta_policy {
    long long heads = 0;        ///< query and key heads; 0 = the model's query heads
    long long value_heads = 0;  ///< 0 = as many as query and key heads
    long long key_dim = 0;      ///< 0 = the model's head width
    long long value_dim = 0;    ///< 0 = the model's head width
    long long conv = 4;         ///< width of the short convolutions on q, k and v
    bool output_gate = true;    ///< silu gate before the output projection

    friend constexpr bool operator==(const gated_delta_policy&, const gated_delta_policy&) = default;
};

/// S = a S (I - b k k') + b v k', y = S q, with q and k of unit length. Source: Yang et al. 2025 (Gated DeltaNet),
/// Eq. 10.
template <gated_delta_policy P = gated_delta_policy{}>
struct GatedDelta {
    static constexpr gated_delta_policy policy = P;
    static constexpr std::string_view name = "gated delta rule";
    static constexpr bool causal = true;
    static constexpr double norm_epsilon = 1e-5;

    static constexpr long long heads(const Dims& d) { return policy.heads == 0 ? d.heads : policy.heads; }
    static constexpr long long value_heads(const Dims& d) {
        return policy.value_heads == 0 ? heads(d) : policy.value_heads;
    }
    static constexpr long long key_dim(const Dims& d) { return policy.key_dim == 0 ? d.head_dim : policy.key_dim; }
    static constexpr long long value_dim(const Dims& d) {
        return policy.value_dim == 0 ? d.head_dim : policy.value_dim;
    }

    static constexpr tensor_rows tensors(const Dims& d) {
        const long long keys = heads(d) * key_dim(d);
        const long long values = value_heads(d) * value_dim(d);
        tensor_rows rows;
        rows.add(matrix("mixer.q_proj.weight", role::query, keys, d.width));
        rows.add(matrix("mixer.k_proj.weight", role::key, keys, d.width));
        rows.add(matrix("mixer.v_proj.weight", role::value, values, d.width));
        rows.add(detail::depthwise("mixer.q_conv1d.weight", keys, policy.conv));
        rows.add(detail::depthwise("mixer.k_conv1d.weight", keys, policy.conv));
        rows.add(detail::depthwise("mixer.v_conv1d.weight", values, policy.conv));
        rows.add(matrix("mixer.a_proj.weight", role::input, value_heads(d), d.width));
        rows.add(matrix("mixer.b_proj.weight", role::input, value_heads(d), d.width));
        rows.add(vector("mixer.A_log", role::recurrence, value_heads(d), {init_kind::log_uniform, 16}));
        rows.add(vector("mixer.dt_bias", role::bias, value_heads(d), {init_kind::step_bias, 1e-3}));
        if (policy.output_gate) rows.add(matrix("mixer.g_proj.weight", role::input, values, d.width));
        rows.add(vector("mixer.o_norm.weight", role::norm, value_dim(d), {init_kind::ones, 1}));
        rows.add(matrix("mixer.o_proj.weight", role::output, d.width, values));
        return rows;
    }
    static constexpr mixing_work mixing(const Dims& d) {
        return {.per_row = 3 * value_heads(d) * key_dim(d) * value_dim(d)};
    }
    static constexpr state_size state(const Dims& d) {
        return {.recurrent = value_heads(d) * key_dim(d) * value_dim(d),
                .conv_channels = 2 * heads(d) * key_dim(d) + value_heads(d) * value_dim(d),
                .conv_width = policy.conv};
    }
    static constexpr verdict check(const Dims& d) {
        using detail::require_size;
        return detail::first_broken(
            require_size(heads(d), size_name::heads), require_size(key_dim(d), size_name::key_dim),
            require_size(value_dim(d), size_name::value_dim), require_size(value_heads(d), size_name::value_heads),
            require_size(policy.conv, size_name::conv),
            detail::require(detail::divides(heads(d), value_heads(d)), rule::channels_divide_heads, value_heads(d),
                            heads(d)));
    }

    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        sink.function("query and key heads", heads(d));
        sink.function("value heads", value_heads(d));
        sink.function("key width", key_dim(d));
        sink.function("value width", value_dim(d));
        sink.function("convolution width", policy.conv);
        sink.function("output gate", policy.output_gate);
        sink.function("query and key norm", "unit length");
        sink.function("output norm epsilon", norm_epsilon);
        sink.function("transition", "exp(-exp(A) softplus(a + bias)) (I - b k k'), b by sigmoid");
        detail::describe_reset(sink);
    }
};

inline constexpr Block<GatedDelta<>, SwiGLU<>> gated_delta{};

}  // namespace sdepth::inline v0
