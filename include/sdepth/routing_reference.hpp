// SPDX-License-Identifier: MIT
// What routing statistics are compared with: the two analytic references of the X-MoD paper (Table 10), for a stretch
// of T sparse layers that choose a share p = 1/K each. Knows no model. Rank 0.
#pragma once

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

namespace detail {

constexpr double integer_power(double base, long long exponent) {
    double power = 1;
    for (; exponent > 0; exponent /= 2, base *= base) {
        if (exponent % 2 != 0) power *= base;
    }
    return power;
}

}  // namespace detail

/// Each layer chooses anew, regardless of the others.
struct independent_routing {
    long long sparsity = 1;  ///< K
    long long layers = 0;    ///< T

    constexpr double share() const { return 1.0 / static_cast<double>(sparsity); }
    /// Share of the tokens that at least one layer chooses: 1 - (1 - p)^T.
    constexpr double coverage() const { return 1 - detail::integer_power(1 - share(), layers); }
    /// Jaccard index of the choices of neighbouring layers, for long sequences: p / (2 - p).
    constexpr double jaccard() const { return share() / (2 - share()); }
    /// Probability that a token is chosen `times` times: binomial, T draws of probability p.
    constexpr double updates(long long times) const {
        if (times < 0 || times > layers) return 0;
        double ways = 1;
        for (long long i = 1; i <= times; ++i)
            ways = ways * static_cast<double>(layers - times + i) / static_cast<double>(i);
        return ways * detail::integer_power(share(), times) * detail::integer_power(1 - share(), layers - times);
    }
};

/// All layers choose the same tokens: what collapse looks like.
struct repeated_routing {
    long long sparsity = 1;
    long long layers = 0;

    constexpr double share() const { return 1.0 / static_cast<double>(sparsity); }
    constexpr double coverage() const { return layers == 0 ? 0 : share(); }
    constexpr double jaccard() const { return 1; }
    /// p at T, 1 - p at 0.
    constexpr double updates(long long times) const {
        if (layers == 0) return times == 0 ? 1 : 0;
        return times == layers ? share() : times == 0 ? 1 - share() : 0;
    }
};

/// Share of the chosen tokens that two masks of K chose differently, when `agreement` is the share of all tokens on
/// which they agree and both choose 1/K: (1 - agreement) / 2 * K. Agreement itself is flattered by the many skipped
/// tokens.
constexpr double disagreement_among_chosen(double agreement, long long sparsity) {
    return (1 - agreement) / 2 * static_cast<double>(sparsity);
}

}  // namespace sdepth::inline v0
