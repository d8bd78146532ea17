// SPDX-License-Identifier: MIT
// Tokens of a step, and the tokens that a budget of training FLOPs buys. Rank 4.
#pragma once

#include <concepts>

#include "sdepth/error.hpp"
#include "sdepth/flops.hpp"

namespace sdepth::inline v0 {

/// Tokens of one optimiser step: exact, over all micro-batches and devices. For a run that breaks a rule it throws
/// `error`, and is no constant.
constexpr long long batch_tokens(const Run& r) {
    if (!check_run(r).ok()) throw error("sdepth: batch_tokens: no such run: see check_run(run) for the broken rule");
    return (count(r.seq) * count(r.batch) * count(r.accumulate) * count(r.ranks)).value();
}

/// Tokens of a step of the X-MoD paper, 80 x 32,768, "about 2.5M" (Eq. 32).
inline constexpr long long paper_batch_tokens = 2'621'440;

/// Sequences of length `seq` whose tokens come nearest to `tokens`; at least one.
constexpr long long sequences_for(long long seq, long long tokens = paper_batch_tokens) {
    const long long whole = tokens / seq;
    return whole == 0 || tokens % seq > seq / 2 ? whole + 1 : whole;
}

/// Tokens that a budget of training FLOPs buys, rounded down, in both readings of the X-MoD paper's C: it says training
/// FLOPs, and its printed numbers of tokens fit forward FLOPs.
struct token_budget {
    long long training = 0;      ///< a token costs 3 x `paper`, forward and backward: ours
    long long forward = 0;       ///< a token costs `paper`: what the paper's printed numbers amount to
    long long batch_tokens = 0;  ///< of one step

    /// Whole steps within `training`.
    constexpr long long steps() const { return training / batch_tokens; }
};

namespace detail {

struct inert_token_budget {
    inert_number training, forward, batch_tokens;
    constexpr inert_number steps() const { return {}; }
    constexpr operator token_budget() const { return {.batch_tokens = 1}; }  // NOLINT(google-explicit-constructor)
};

/// Tokens of `cost` FLOPs each. Beyond the range a constant does not compile, for it throws, and the error shows the
/// line.
constexpr long long affordable(double compute, double cost) {
    if (!(compute >= 0 && compute < 9e18 * cost))
        throw error("sdepth: tokens_for: the budget must buy 0 to 9e18 tokens");
    return static_cast<long long>(compute / cost);
}

template <class M, Run R>
struct paper_cost {
    static constexpr auto per_token = flops<M, evaluated(R)>.paper.per_token().value();
    static constexpr bool counted = std::same_as<decltype(per_token), const double>;
};

}  // namespace detail

/// Tokens of model M in run R for `compute` training FLOPs, from 0 to what 9e18 tokens cost; else it throws `error`,
/// and is no constant.
template <class M, Run R>
constexpr auto tokens_for(double compute) {
    using cost = detail::paper_cost<M, detail::evaluated(R)>;
    if constexpr (cost::counted) {
        return token_budget{.training = detail::affordable(compute, 3 * cost::per_token),
                            .forward = detail::affordable(compute, cost::per_token),
                            .batch_tokens = batch_tokens(R)};
    } else {
        return detail::inert_token_budget{};
    }
}

}  // namespace sdepth::inline v0
