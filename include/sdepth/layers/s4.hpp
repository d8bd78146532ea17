// SPDX-License-Identifier: MIT
// S4: a diagonal state space that does not change with time. Rank 2.
#pragma once

#include <string_view>

#include "sdepth/layer.hpp"
#include "sdepth/layers/block.hpp"
#include "sdepth/layers/recurrence.hpp"

namespace sdepth::inline v0 {

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
        rows.add(detail::transition("mixer.A_log", d.width, policy.state, {init_kind::log_counting, 0}));
        rows.add(detail::transition("mixer.B", d.width, policy.state, {init_kind::ones, 1}));
        rows.add(detail::transition("mixer.C", d.width, policy.state, {init_kind::normal, 1}));
        rows.add(vector("mixer.D", role::recurrence, d.width, {init_kind::ones, 1}));
        rows.add(vector("mixer.log_step", role::recurrence, d.width, {init_kind::log_step, 1e-3}));
        rows.add(matrix("mixer.out_proj.weight", role::output, d.width, d.width));
        return rows;
    }
    static constexpr mixing_work mixing(const Dims& d) { return {.per_row = 2 * d.width * policy.state}; }
    static constexpr state_size state(const Dims& d) { return {.recurrent = d.width * policy.state}; }
    static constexpr verdict check(const Dims&) { return detail::require_size(policy.state, size_name::state); }

    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        sink.function("channels", d.width);
        sink.function("states per channel", policy.state);
        sink.function("discretisation", "zero-order hold");
        sink.function("gate", "none, GELU on the output");
        sink.function("convolution", "none");
        detail::describe_reset(sink);
    }
};

inline constexpr Block<S4<>, None> s4{};

}  // namespace sdepth::inline v0
