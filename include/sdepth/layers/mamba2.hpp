// SPDX-License-Identifier: MIT
// Mamba-2: state-space duality, one transition a head. Rank 2.
#pragma once

#include <string_view>

#include "sdepth/layer.hpp"
#include "sdepth/layers/block.hpp"
#include "sdepth/layers/recurrence.hpp"

namespace sdepth::inline v0 {

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

    static constexpr long long channels(const Dims& d) { return policy.expand * d.width; }
    static constexpr long long heads(const Dims& d) { return quotient(channels(d), policy.head_dim); }
    static constexpr long long conv_channels(const Dims& d) { return channels(d) + product(2, states()); }

    static constexpr tensor_rows tensors(const Dims& d) {
        const long long inner = channels(d);
        tensor_rows rows;
        const long long b_or_c = states();
        rows.add(stacked("mixer.in_proj.weight", role::input, {inner, inner, b_or_c, b_or_c, heads(d)},
                         d.width));  // z, x, B, C, step
        rows.add(detail::depthwise("mixer.conv1d.weight", conv_channels(d), policy.conv));
        rows.add(vector("mixer.conv1d.bias", role::bias, conv_channels(d), {init_kind::zeros, 0}));
        rows.add(vector("mixer.dt_bias", role::bias, heads(d), {init_kind::step_bias, 1e-3}));
        rows.add(vector("mixer.A_log", role::recurrence, heads(d), {init_kind::log_uniform, 16}));
        rows.add(vector("mixer.D", role::recurrence, heads(d), {init_kind::ones, 1}));
        rows.add(vector("mixer.norm.weight", role::norm, inner, {init_kind::ones, 1}));
        rows.add(matrix("mixer.out_proj.weight", role::output, d.width, inner));
        return rows;
    }
    static constexpr mixing_work mixing(const Dims& d) { return {.per_row = 2 * channels(d) * policy.state}; }
    static constexpr state_size state(const Dims& d) {
        return {.recurrent = channels(d) * policy.state, .conv_channels = conv_channels(d), .conv_width = policy.conv};
    }
    static constexpr verdict check(const Dims& d) {
        using detail::require;
        using detail::require_size;
        const verdict sizes = detail::first_broken(
            require_size(policy.state, size_name::state), require_size(policy.conv, size_name::conv),
            require_size(policy.expand, size_name::expand), require_size(policy.head_dim, size_name::head_dim),
            require_size(policy.groups, size_name::groups));
        if (!sizes.ok()) return sizes;  // what follows divides by them
        return detail::first_broken(
            require(detail::divides(policy.head_dim, channels(d)), rule::channels_divide_heads, channels(d),
                    policy.head_dim),
            require(detail::divides(policy.groups, heads(d)), rule::channels_divide_heads, heads(d), policy.groups));
    }

    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        sink.function("heads", heads(d));
        sink.function("channels per head", policy.head_dim);
        sink.function("states per channel", policy.state);
        sink.function("groups of B and C", policy.groups);
        sink.function("convolution width", policy.conv);
        sink.function("discretisation", "exp(step A), step B");
        sink.function("gate", "silu before the RMS norm of the output, steps by softplus");
        sink.function("output norm epsilon", norm_epsilon);
        detail::describe_reset(sink);
    }

  private:
    // By parameters, or compilers warn of sizes that the check refuses.
    static constexpr long long quotient(long long whole, long long part) { return whole / part; }
    static constexpr long long product(long long a, long long b) { return a * b; }
    static constexpr long long states() { return product(policy.groups, policy.state); }  // of B, and as many of C
};

inline constexpr Block<Mamba2<>, None> mamba2{};

}  // namespace sdepth::inline v0
