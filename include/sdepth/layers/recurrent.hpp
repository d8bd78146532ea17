// SPDX-License-Identifier: MIT
// Mixers with a state of fixed size: S4, Mamba, Mamba-2, gated linear attention, gated delta rule. Rank 2.
#pragma once

#include <string_view>

#include "sdepth/choices.hpp"
#include "sdepth/layer.hpp"
#include "sdepth/layers/block.hpp"

namespace sdepth::inline v0 {

namespace detail {

// The weights of a short causal convolution over each channel apart.
constexpr tensor_row depthwise(std::string_view name, long long channels, long long width) {
    return {.name = name, .use = role::conv, .rows = channels, .cols = width, .start = {init_kind::normal, 0.02}};
}
// A matrix that parametrises a recurrence element by element.
constexpr tensor_row transition(std::string_view name, long long channels, long long states, initial start) {
    return {.name = name, .use = role::recurrence, .rows = channels, .cols = states, .start = start};
}

template <class Sink>
constexpr void describe_reset(Sink& sink) {
    sink.function("state reset", "at document starts");
}

}  // namespace detail

struct s4_policy {
    long long state = 64;  ///< states a channel, N

    friend constexpr bool operator==(const s4_policy&, const s4_policy&) = default;
};

/// Diagonal real S4, time invariant: h = exp(D A) h + B' x, y = C h + D x, then GELU and an output projection.
/// Source: Gu et al. 2022 (S4), Gupta et al. 2022 (diagonal); zero-order hold.
template <s4_policy P = s4_policy{}>
struct S4 {
    static constexpr s4_policy policy = P;
    static constexpr std::string_view name = "s4";
    static constexpr bool causal = true;

    static constexpr tensor_rows tensors(const Dims& d) {
        tensor_rows rows;
        rows.add(detail::transition("mixer.A_log", d.width, P.state, {init_kind::log_counting, 0}));
        rows.add(detail::transition("mixer.B", d.width, P.state, {init_kind::ones, 1}));
        rows.add(detail::transition("mixer.C", d.width, P.state, {init_kind::normal, 1}));
        rows.add(vector("mixer.D", role::recurrence, d.width, {init_kind::ones, 1}));
        rows.add(vector("mixer.log_step", role::recurrence, d.width, {init_kind::log_step, 1e-3}));
        rows.add(matrix("mixer.out_proj.weight", role::output, d.width, d.width));
        return rows;
    }
    static constexpr mixing_work mixing(const Dims& d) { return {.per_row = 2 * d.width * P.state}; }
    static constexpr state_size state(const Dims& d) { return {.recurrent = d.width * P.state}; }
    static constexpr verdict check(const Dims&) { return detail::require_size(P.state, size_name::state); }

    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        sink.function("channels", d.width);
        sink.function("states per channel", P.state);
        sink.function("discretisation", "zero-order hold");
        sink.function("gate", "none, GELU on the output");
        sink.function("convolution", "none");
        detail::describe_reset(sink);
    }
};

struct mamba_policy {
    long long state = 16;     ///< states a channel, N
    long long conv = 4;       ///< width of the short convolution
    long long expand = 2;     ///< inner channels over width
    long long step_rank = 0;  ///< rank of the step projection; 0 = ceil(width / 16)

    friend constexpr bool operator==(const mamba_policy&, const mamba_policy&) = default;
};

/// Selective state space: step, B and C from the input, A free of it. Source: Gu and Dao 2024 (Mamba), section 3.
template <mamba_policy P = mamba_policy{}>
struct Mamba {
    static constexpr mamba_policy policy = P;
    static constexpr std::string_view name = "mamba";
    static constexpr bool causal = true;

    static constexpr long long channels(const Dims& d) { return P.expand * d.width; }
    static constexpr long long step_rank(const Dims& d) {
        return P.step_rank == 0 ? ceil_div(d.width, 16) : P.step_rank;
    }

    static constexpr tensor_rows tensors(const Dims& d) {
        const long long inner = channels(d);
        const long long rank = step_rank(d);
        tensor_rows rows;
        rows.add(matrix("mixer.in_proj.weight", role::input, 2 * inner, d.width));
        rows.add(detail::depthwise("mixer.conv1d.weight", inner, P.conv));
        rows.add(vector("mixer.conv1d.bias", role::bias, inner, {init_kind::zeros, 0}));
        rows.add(matrix("mixer.x_proj.weight", role::input, rank + P.state + P.state, inner));
        rows.add(matrix("mixer.dt_proj.weight", role::input, inner, rank));
        rows.add(vector("mixer.dt_proj.bias", role::bias, inner, {init_kind::step_bias, 1e-3}));
        rows.add(detail::transition("mixer.A_log", inner, P.state, {init_kind::log_counting, 0}));
        rows.add(vector("mixer.D", role::recurrence, inner, {init_kind::ones, 1}));
        rows.add(matrix("mixer.out_proj.weight", role::output, d.width, inner));
        return rows;
    }
    static constexpr mixing_work mixing(const Dims& d) { return {.per_row = 2 * channels(d) * P.state}; }
    static constexpr state_size state(const Dims& d) {
        return {.recurrent = channels(d) * P.state, .conv_channels = channels(d), .conv_width = P.conv};
    }
    static constexpr verdict check(const Dims& d) {
        using detail::require_size;
        return detail::first_broken(require_size(P.state, size_name::state), require_size(P.conv, size_name::conv),
                                    require_size(P.expand, size_name::expand),
                                    require_size(step_rank(d), size_name::step_rank));
    }

    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        sink.function("channels", channels(d));
        sink.function("states per channel", P.state);
        sink.function("convolution width", P.conv);
        sink.function("step rank", step_rank(d));
        sink.function("discretisation", "zero-order hold for A, Euler for B");
        sink.function("gate", "silu on the output, steps by softplus");
        detail::describe_reset(sink);
    }
};

struct mamba2_policy {
    long long state = 128;    ///< states a head, N
    long long conv = 4;       ///< width of the short convolution
    long long expand = 2;     ///< inner channels over width
    long long head_dim = 64;  ///< channels a head
    long long groups = 1;     ///< groups of heads that share B and C

    friend constexpr bool operator==(const mamba2_policy&, const mamba2_policy&) = default;
};

/// State-space duality: one scalar transition a head, gated RMS norm. Source: Dao and Gu 2024 (Mamba-2), section 7.
template <mamba2_policy P = mamba2_policy{}>
struct Mamba2 {
    static constexpr mamba2_policy policy = P;
    static constexpr std::string_view name = "mamba2";
    static constexpr bool causal = true;
    static constexpr double norm_epsilon = 1e-5;

    static constexpr long long channels(const Dims& d) { return P.expand * d.width; }
    static constexpr long long heads(const Dims& d) { return channels(d) / P.head_dim; }
    static constexpr long long conv_channels(const Dims& d) { return channels(d) + inputs(P.groups, P.state); }

    static constexpr tensor_rows tensors(const Dims& d) {
        const long long inner = channels(d);
        tensor_rows rows;
        rows.add(matrix("mixer.in_proj.weight", role::input, inner + conv_channels(d) + heads(d), d.width));
        rows.add(detail::depthwise("mixer.conv1d.weight", conv_channels(d), P.conv));
        rows.add(vector("mixer.conv1d.bias", role::bias, conv_channels(d), {init_kind::zeros, 0}));
        rows.add(vector("mixer.dt_bias", role::bias, heads(d), {init_kind::step_bias, 1e-3}));
        rows.add(vector("mixer.A_log", role::recurrence, heads(d), {init_kind::log_uniform, 16}));
        rows.add(vector("mixer.D", role::recurrence, heads(d), {init_kind::ones, 1}));
        rows.add(vector("mixer.norm.weight", role::norm, inner, {init_kind::ones, 1}));
        rows.add(matrix("mixer.out_proj.weight", role::output, d.width, inner));
        return rows;
    }
    static constexpr mixing_work mixing(const Dims& d) { return {.per_row = 2 * channels(d) * P.state}; }
    static constexpr state_size state(const Dims& d) {
        return {.recurrent = channels(d) * P.state, .conv_channels = conv_channels(d), .conv_width = P.conv};
    }
    static constexpr verdict check(const Dims& d) {
        using detail::require;
        using detail::require_size;
        const verdict sizes = detail::first_broken(
            require_size(P.state, size_name::state), require_size(P.conv, size_name::conv),
            require_size(P.expand, size_name::expand), require_size(P.head_dim, size_name::head_dim),
            require_size(P.groups, size_name::groups));
        if (!sizes.ok()) return sizes;  // what follows divides by them
        return detail::first_broken(
            require(detail::divides(P.head_dim, channels(d)), rule::channels_divide_heads, channels(d), P.head_dim),
            require(detail::divides(P.groups, heads(d)), rule::channels_divide_heads, heads(d), P.groups));
    }

    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        sink.function("heads", heads(d));
        sink.function("channels per head", P.head_dim);
        sink.function("states per channel", P.state);
        sink.function("groups of B and C", P.groups);
        sink.function("convolution width", P.conv);
        sink.function("discretisation", "exp(step A), step B");
        sink.function("gate", "silu before the RMS norm of the output, steps by softplus");
        sink.function("output norm epsilon", norm_epsilon);
        detail::describe_reset(sink);
    }

  private:
    // B and C. By parameters, or compilers warn of sizes that the check refuses.
    static constexpr long long inputs(long long groups, long long states) { return 2 * groups * states; }
};

struct linear_attention_policy {
    long long heads = 0;      ///< 0 = the model's query heads
    long long key_dim = 0;    ///< 0 = the model's head width
    long long value_dim = 0;  ///< 0 = the model's head width
    feature_map map = feature_map::elu_plus_one;
    bool gated = true;      ///< a learned forget gate a head, from the input
    double epsilon = 1e-6;  ///< of the denominator

    friend constexpr bool operator==(const linear_attention_policy&, const linear_attention_policy&) = default;
};

/// S = l S + f(k) v', z = l z + f(k), y = f(q)' S / (f(q)' z + eps). Source: Katharopoulos et al. 2020, gate as in Yang
/// et al. 2024.
template <linear_attention_policy P = linear_attention_policy{}>
struct LinearAttention {
    static constexpr linear_attention_policy policy = P;
    static constexpr std::string_view name = "linear attention";
    static constexpr bool causal = true;

    static constexpr long long heads(const Dims& d) { return P.heads == 0 ? d.heads : P.heads; }
    static constexpr long long key_dim(const Dims& d) { return P.key_dim == 0 ? d.head_dim : P.key_dim; }
    static constexpr long long value_dim(const Dims& d) { return P.value_dim == 0 ? d.head_dim : P.value_dim; }

    static constexpr tensor_rows tensors(const Dims& d) {
        const long long keys = heads(d) * key_dim(d);
        const long long values = heads(d) * value_dim(d);
        tensor_rows rows;
        rows.add(matrix("mixer.q_proj.weight", role::query, keys, d.width));
        rows.add(matrix("mixer.k_proj.weight", role::key, keys, d.width));
        rows.add(matrix("mixer.v_proj.weight", role::value, values, d.width));
        if (P.gated) {
            rows.add(matrix("mixer.g_proj.weight", role::input, heads(d), d.width));
            rows.add(vector("mixer.g_proj.bias", role::bias, heads(d), {init_kind::zeros, 0}));
        }
        rows.add(matrix("mixer.o_proj.weight", role::output, d.width, values));
        return rows;
    }
    static constexpr mixing_work mixing(const Dims& d) {
        return {.per_row = heads(d) * key_dim(d) * (2 * value_dim(d) + 1)};
    }
    static constexpr state_size state(const Dims& d) {
        return {.recurrent = heads(d) * key_dim(d) * (value_dim(d) + 1)};
    }
    static constexpr verdict check(const Dims& d) {
        using detail::require_size;
        return detail::first_broken(require_size(heads(d), size_name::heads),
                                    require_size(key_dim(d), size_name::key_dim),
                                    require_size(value_dim(d), size_name::value_dim),
                                    detail::require_positive(policy_name::epsilon, P.epsilon));
    }

    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        sink.function("heads", heads(d));
        sink.function("key width", key_dim(d));
        sink.function("value width", value_dim(d));
        sink.function("feature map", name_of(P.map));
        sink.function("forget gate", P.gated);
        sink.function("denominator epsilon", P.epsilon);
        sink.function("convolution", "none");
        detail::describe_reset(sink);
    }
};

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

    static constexpr long long heads(const Dims& d) { return P.heads == 0 ? d.heads : P.heads; }
    static constexpr long long value_heads(const Dims& d) { return P.value_heads == 0 ? heads(d) : P.value_heads; }
    static constexpr long long key_dim(const Dims& d) { return P.key_dim == 0 ? d.head_dim : P.key_dim; }
    static constexpr long long value_dim(const Dims& d) { return P.value_dim == 0 ? d.head_dim : P.value_dim; }

    static constexpr tensor_rows tensors(const Dims& d) {
        const long long keys = heads(d) * key_dim(d);
        const long long values = value_heads(d) * value_dim(d);
        tensor_rows rows;
        rows.add(matrix("mixer.q_proj.weight", role::query, keys, d.width));
        rows.add(matrix("mixer.k_proj.weight", role::key, keys, d.width));
        rows.add(matrix("mixer.v_proj.weight", role::value, values, d.width));
        rows.add(detail::depthwise("mixer.q_conv1d.weight", keys, P.conv));
        rows.add(detail::depthwise("mixer.k_conv1d.weight", keys, P.conv));
        rows.add(detail::depthwise("mixer.v_conv1d.weight", values, P.conv));
        rows.add(matrix("mixer.a_proj.weight", role::input, value_heads(d), d.width));
        rows.add(matrix("mixer.b_proj.weight", role::input, value_heads(d), d.width));
        rows.add(vector("mixer.A_log", role::recurrence, value_heads(d), {init_kind::log_uniform, 16}));
        rows.add(vector("mixer.dt_bias", role::bias, value_heads(d), {init_kind::step_bias, 1e-3}));
        if (P.output_gate) rows.add(matrix("mixer.g_proj.weight", role::input, values, d.width));
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
                .conv_width = P.conv};
    }
    static constexpr verdict check(const Dims& d) {
        using detail::require_size;
        return detail::first_broken(
            require_size(heads(d), size_name::heads), require_size(key_dim(d), size_name::key_dim),
            require_size(value_dim(d), size_name::value_dim), require_size(value_heads(d), size_name::value_heads),
            require_size(P.conv, size_name::conv),
            detail::require(detail::divides(heads(d), value_heads(d)), rule::channels_divide_heads, value_heads(d),
                            heads(d)));
    }

    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        sink.function("query and key heads", heads(d));
        sink.function("value heads", value_heads(d));
        sink.function("key width", key_dim(d));
        sink.function("value width", value_dim(d));
        sink.function("convolution width", P.conv);
        sink.function("output gate", P.output_gate);
        sink.function("query and key norm", "unit length");
        sink.function("output norm epsilon", norm_epsilon);
        sink.function("transition", "exp(-exp(A) softplus(a + bias)) (I - b k k'), b by sigmoid");
        detail::describe_reset(sink);
    }
};

inline constexpr Block<S4<>, None> s4{};
inline constexpr Block<Mamba<>, None> mamba{};
inline constexpr Block<Mamba2<>, None> mamba2{};
inline constexpr Block<LinearAttention<>, SwiGLU<>> linear_attention{};
inline constexpr Block<GatedDelta<>, SwiGLU<>> gated_delta{};

}  // namespace sdepth::inline v0
