// SPDX-License-Identifier: MIT
// Mamba: a state space whose step, B and C come from the input. Rank 2.
#pragma once

#include <string_view>

#include "sdepth/layer.hpp"
#include "sdepth/layers/block.hpp"
#include "sdepth/layers/recurrence.hpp"

namespace sdepth::inline v0 {

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

    static constexpr long long channels(const Dims& d) { return policy.expand * d.width; }
    static constexpr long long step_rank(const Dims& d) {
        return policy.step_rank == 0 ? ceil_div(d.width, 16) : policy.step_rank;
    }

    static constexpr tensor_rows tensors(const Dims& d) {
        const long long inner = channels(d);
        const long long rank = step_rank(d);
        tensor_rows rows;
        rows.add(stacked("mixer.in_proj.weight", role::input, {inner, inner}, d.width));  // x, gate z
        rows.add(detail::depthwise("mixer.conv1d.weight", inner, policy.conv));
        rows.add(vector("mixer.conv1d.bias", role::bias, inner, {init_kind::zeros, 0}));
        rows.add(stacked("mixer.x_proj.weight", role::input, {rank, policy.state, policy.state}, inner));  // step, B, C
        rows.add(matrix("mixer.dt_proj.weight", role::input, inner, rank));
        rows.add(vector("mixer.dt_proj.bias", role::bias, inner, {init_kind::step_bias, 1e-3}));
        rows.add(detail::transition("mixer.A_log", inner, policy.state, {init_kind::log_counting, 0}));
        rows.add(vector("mixer.D", role::recurrence, inner, {init_kind::ones, 1}));
        rows.add(matrix("mixer.out_proj.weight", role::output, d.width, inner));
        return rows;
    }
    static constexpr mixing_work mixing(const Dims& d) { return {.per_row = 2 * channels(d) * policy.state}; }
    static constexpr state_size state(const Dims& d) {
        return {.recurrent = channels(d) * policy.state, .conv_channels = channels(d), .conv_width = policy.conv};
    }
    static constexpr verdict check(const Dims& d) {
        using detail::require_size;
        return detail::first_broken(
            require_size(policy.state, size_name::state), require_size(policy.conv, size_name::conv),
            require_size(policy.expand, size_name::expand), require_size(step_rank(d), size_name::step_rank));
    }

    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        sink.function("channels", channels(d));
        sink.function("states per channel", policy.state);
        sink.function("convolution width", policy.conv);
        sink.function("step rank", step_rank(d));
        sink.function("discretisation", "zero-order hold for A, Euler for B");
        sink.function("gate", "silu on the output, steps by softplus");
        detail::describe_reset(sink);
    }
};

inline constexpr Block<Mamba<>, None> mamba{};

}  // namespace sdepth::inline v0
