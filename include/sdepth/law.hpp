// SPDX-License-Identifier: MIT
// The residual law of the X-MoD paper (Eq. 10-31, Table 8): its terms, optimum, domain and error, in plain doubles.
// Knows no formula and no model (`planner.hpp`) and no measured run (`law_runs.hpp`). docs/law.md has its limits. Rank
// 0.
#pragma once

#include <algorithm>
#include <cstdio>
#include <limits>
#include <span>
#include <string>

#include "sdepth/config.hpp"
#include "sdepth/error.hpp"

namespace sdepth::inline v0 {

namespace detail {

// std::log and std::pow are no constant expressions in C++20. One definition serves compile time and run time, so that
// both give the same digits; its error is that of rounding the exponent times ln x (tests/host/law.cpp).
inline constexpr double ln_2 = 0.693147180559945309417232121458176568;

/// ln x. Positive, finite numbers only, for every size of the law is one.
constexpr double log_of(double x) {
    if (!(x > 0 && x <= std::numeric_limits<double>::max())) {
        throw error("a size given to the law is not a positive, finite number: set every field of law_point");
    }
    int doublings = 0;
    while (x > 1.5) {
        x /= 2;
        ++doublings;
    }
    while (x < 0.75) {
        x *= 2;
        --doublings;
    }
    const double t = (x - 1) / (x + 1);
    double sum = 0;
    double power = t;
    for (int n = 1; n <= 27; n += 2, power *= t * t) sum += power / n;
    return doublings * ln_2 + 2 * sum;
}

constexpr double power_of(double x, double exponent) {
    const double y = exponent * log_of(x);
    const int doublings = static_cast<int>(y / ln_2 + (y < 0 ? -0.5 : 0.5));
    const double rest = y - doublings * ln_2;
    double result = 1;
    for (int n = 16; n >= 1; --n) result = 1 + result * rest / n;
    for (int i = 0; i < doublings; ++i) result *= 2;
    for (int i = 0; i > doublings; --i) result /= 2;
    return result;
}

}  // namespace detail

// ---- depth budget (Eq. 4, 5, 14-19) ---------------------------------------------------------------------------------

/// A/(A+1), the sparse part of the active depth behind the prefix (Eq. 18).
constexpr double stride_share(double stride) { return stride / (stride + 1); }
/// 2A/(A+1), the same relative to A = 1 (Eq. 19).
constexpr double relative_share(double stride) { return 2 * stride / (stride + 1); }
/// Active-equivalent depth in sparse layers (Eq. 16) and in anchors (Eq. 17), of H behind the prefix; their sum is H.
constexpr double sparse_depth(double stride, double h) { return stride / (stride + 1) * h; }
constexpr double anchor_depth(double stride, double h) { return h / (stride + 1); }

/// N(K,A)/Nact (Eq. 4 over Eq. 5) for `active` layers of which `prefix` come first, with fractional block counts.
constexpr double capacity_ratio(double sparsity, double stride, double active = 28, double prefix = 4) {
    return (prefix + anchor_depth(stride, active - prefix) * (1 + stride * sparsity)) / active;
}

// ---- the law --------------------------------------------------------------------------------------------------------

/// Where the law is asked.
struct law_point {
    double active = 0;        ///< Nact, active-equivalent parameters, embeddings included
    double seq = 0;           ///< L, tokens of a sequence
    double sparsity = 1;      ///< K
    double stride = 1;        ///< A
    double capacity = 1;      ///< N(K,A)/Nact, of the layers
    double token_ratio = 1;   ///< D_sparse/D_dense at equal FLOPs; the exposure term alone reads it
    double dense_tokens = 1;  ///< D_dense; the exposure term alone reads it
};

/// Coefficients of Eq. 22. The defaults are Table 8, where v = 0 leaves Eq. 21; v has no published fit.
struct residual_law {
    double e = 0.01848;
    double u = 0.93519;
    double eta_n = 0.07784;
    double rho_n = 1.19538;
    double w = 105.21108;
    double eta_l = 0.92624;
    double rho_l = 0.48494;
    double z = 0.07455;
    double rho_k = 0.79900;
    double rho_a = 0.28293;
    double v = 0;
    double eta_d = 0;
    double rho_d = 0;
};

/// R_N, the reward for capacity (Eq. 12): 0 at N = Nact, at most Nact^-eta_N.
constexpr double capacity_reward(const law_point& p, const residual_law& law = {}) {
    return detail::power_of(p.active, -law.eta_n) * (1 - detail::power_of(p.capacity, -law.rho_n));
}
/// P_L, the price of short sparse contexts (Eq. 13 with L_s = L/K): 0 at K = 1.
constexpr double context_penalty(const law_point& p, const residual_law& law = {}) {
    return detail::power_of(p.seq, -law.eta_l) * (detail::power_of(p.sparsity, law.rho_l) - 1);
}
/// R_AK, stride and sparsity together (Eq. 20): 0 at K = 1 and at A = 1.
constexpr double stride_interaction(const law_point& p, const residual_law& law = {}) {
    return (detail::power_of(p.sparsity, law.rho_k) - 1) * (detail::power_of(relative_share(p.stride), law.rho_a) - 1);
}
/// P_D, the price of the tokens that a sparse layer does not see (Eq. 23).
constexpr double exposure_penalty(const law_point& p, const residual_law& law) {
    return detail::power_of(p.dense_tokens, -law.eta_d) *
           (detail::power_of(p.token_ratio / p.sparsity, -law.rho_d) - 1);
}

/// Delta: the loss less that of a dense model of the same training FLOPs, length and active size (Eq. 21, 22).
/// It is e, not 0, at K = 1. Throws `error` for a size that is not positive.
constexpr double residual(const law_point& p, const residual_law& law = {}) {
    const double reduced =
        law.e - law.u * capacity_reward(p, law) + law.w * context_penalty(p, law) - law.z * stride_interaction(p, law);
    return law.v == 0 ? reduced : reduced + law.v * exposure_penalty(p, law);
}

/// Exponents of K_best ~ L^length Nact^active, for large K at A = 1 (Eq. 31). Asymptotic: `best_of` has the minimum.
struct law_exponents {
    double length = 0;
    double active = 0;
};
constexpr law_exponents best_sparsity_exponents(const residual_law& law = {}) {
    const double rho = law.rho_n + law.rho_l;
    return {law.eta_l / rho, -law.eta_n / rho};
}

// ---- the best K and A on a grid (Eq. 10) ----------------------------------------------------------------------------

/// The design problem: candidates K and A at a given active size and length. C is no input, for the law has no C term.
struct law_grid {
    double active = 0;
    double seq = 0;
    std::span<const long long> sparsities;
    std::span<const double> strides;
    double depth = 28;  ///< active-equivalent layers
    double prefix = 4;
};

struct law_optimum {
    long long sparsity = 0;  ///< 0 = no candidate gives whole layers
    double stride = 0;
    double residual = std::numeric_limits<double>::infinity();
    bool at_edge = false;  ///< K or A is the smallest or largest of several candidates: the minimum may lie outside
};

/// The grid's smallest residual; of equals the first. Combinations without a whole number A K of layers are left out.
constexpr law_optimum best_of(const law_grid& grid, const residual_law& law = {}) {
    law_optimum best;
    for (const long long sparsity : grid.sparsities) {
        for (const double stride : grid.strides) {
            const double k = static_cast<double>(sparsity);
            if (stride * k != static_cast<double>(static_cast<long long>(stride * k))) continue;
            const double capacity = capacity_ratio(k, stride, grid.depth, grid.prefix);
            const double found = residual({grid.active, grid.seq, k, stride, capacity}, law);
            if (found < best.residual) best = {sparsity, stride, found};
        }
    }
    const auto edge = [](const auto& candidates, auto value) {
        const auto [low, high] = std::minmax_element(candidates.begin(), candidates.end());
        return candidates.size() > 1 && (value == *low || value == *high);
    };
    best.at_edge = best.sparsity != 0 && (edge(grid.sparsities, best.sparsity) || edge(grid.strides, best.stride));
    return best;
}

// ---- how far to trust it --------------------------------------------------------------------------------------------

/// Root mean square errors that the paper reports: on the 109 fitted points, on held-out groups (the largest of three),
/// and on the points beyond the fitted ranges. The last is mostly a shift, and larger than the lead over experts.
inline constexpr double fitted_rmse = 0.008758;
inline constexpr double held_out_rmse = 0.0131;
inline constexpr double extrapolated_rmse = 0.0196;

/// The law's value with its error.
struct residual_estimate {
    double value = 0;
    double rmse = 0;         ///< `held_out_rmse` on the fitted set, else `extrapolated_rmse`
    double distance = 0;     ///< doublings to the fitted set
    bool in_ranges = false;  ///< every size within its own fitted range; the set is far smaller than their product

    constexpr double low() const { return value - 2 * rmse; }
    constexpr double high() const { return value + 2 * rmse; }
};

namespace detail {

struct law_range {
    double low, high;

    constexpr bool holds(double x) const { return low <= x && x <= high; }
    constexpr double doublings(double x) const {
        return holds(x) ? 0 : (x < low ? log_of(low / x) : log_of(x / high)) / ln_2;
    }
};
struct law_slice {
    law_range active, seq, sparsity, stride;
};

// The three sweeps. Sizes reach from the exact count to the paper's name of a model, up to 2.4 % more. The paper prints
// no list of K for the first two; 24 is the largest that it names.
inline constexpr law_slice fitted_slices[] = {
    {{543.3e6, 556e6}, {2048, 32768}, {1, 24}, {1, 1}},
    {{161.5e6, 936e6}, {32768, 32768}, {1, 24}, {1, 1}},
    {{161.5e6, 165e6}, {32768, 32768}, {4, 16}, {0.5, 5}},
};
inline constexpr law_slice fitted_ranges{{161.5e6, 936e6}, {2048, 32768}, {1, 24}, {0.5, 5}};

inline std::string text_of(const char* format, double a, double b = 0, double c = 0) {
    char text[160];
    std::snprintf(text, sizeof text, format, a, b, c);
    return text;
}

}  // namespace detail

/// Distance to the nearest of the three fitted sweeps, in doublings: the root of the summed squares of log2 of the
/// factors in Nact, L, K and A.
constexpr double doublings_from_fit(const law_point& p) {
    double nearest = std::numeric_limits<double>::infinity();
    for (const detail::law_slice& s : detail::fitted_slices) {
        const double d[] = {s.active.doublings(p.active), s.seq.doublings(p.seq), s.sparsity.doublings(p.sparsity),
                            s.stride.doublings(p.stride)};
        nearest = std::min(nearest, d[0] * d[0] + d[1] * d[1] + d[2] * d[2] + d[3] * d[3]);
    }
    return nearest == 0 ? 0 : detail::power_of(nearest, 0.5);
}

constexpr residual_estimate estimate(const law_point& p, const residual_law& law = {}) {
    const detail::law_slice& all = detail::fitted_ranges;
    residual_estimate result{residual(p, law)};
    result.distance = doublings_from_fit(p);
    result.rmse = result.distance == 0 ? held_out_rmse : extrapolated_rmse;
    result.in_ranges = all.active.holds(p.active) && all.seq.holds(p.seq) && all.sparsity.holds(p.sparsity) &&
                       all.stride.holds(p.stride);
    return result;
}

/// The estimate in words, with the reference that turns it into a loss (Eq. 37).
inline std::string law_report(const law_point& p, const residual_law& law = {}) {
    const residual_estimate found = estimate(p, law);
    return detail::text_of("residual %+.4f, between %+.4f and %+.4f; ", found.value, found.low(), found.high()) +
           detail::text_of("%.2f doublings from the fitted set", found.distance) +
           (found.in_ranges ? "" : ", outside the fitted ranges") +
           detail::text_of(
               "; a loss needs that of a dense model of %.4g active parameters at %.0f tokens and the same "
               "training FLOPs",
               p.active, p.seq);
}

// ---- FLOPs and exposure (Eq. 24-27) ---------------------------------------------------------------------------------

/// The FLOP model of Eq. 24-26, forward, with fractional block counts (Eq. 15); `flops<M, Run>.paper` has real layers.
struct law_flops {
    double linear = 0;  ///< lambda_p: 2 x weights of a layer / d^2
    double mixing = 0;  ///< lambda_m: 4 x heads x head_dim / d
    double width = 0;   ///< d
    double active = 28;
    double prefix = 4;

    constexpr double sparse(double seq, double sparsity, double stride) const {
        const double blocks = anchor_depth(stride, active - prefix);
        return linear * width * width * active + mixing * seq * width * (prefix + blocks * (1 + stride / sparsity));
    }
    constexpr double dense(double seq) const { return (linear * width + mixing * seq) * width * active; }
    /// (D_sparse/K)/D_dense at equal FLOPs (Eq. 27).
    constexpr double exposure(double seq, double sparsity, double stride) const {
        return dense(seq) / sparse(seq, sparsity, stride) / sparsity;
    }
};

}  // namespace sdepth::inline v0
