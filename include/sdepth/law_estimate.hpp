// SPDX-License-Identifier: MIT
// How far to trust the residual law: the set that it was fitted on, the distance of a point from it, an interval, a
// report. docs/law.md has the law's limits in words. Rank 0.
#pragma once

#include <algorithm>
#include <cstdio>
#include <limits>
#include <string>

#include "sdepth/law.hpp"

namespace sdepth::inline v0 {

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

}  // namespace sdepth::inline v0
