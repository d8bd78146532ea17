// SPDX-License-Identifier: MIT
// The residual law beside measured runs: the dense reference, the error of a law on observed residuals, time. Rank 0.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>

#include "sdepth/error.hpp"
#include "sdepth/law_estimate.hpp"

namespace sdepth::inline v0 {

// ---- the dense reference (Eq. 11, 37) -------------------------------------------------------------------------------

/// One trained dense model of the reference curve.
struct dense_run {
    double flops = 0;  ///< training FLOPs
    double loss = 0;   ///< validation loss
};

/// Loss of the dense curve at `flops`, linear in log FLOPs between its runs, which come in rising order. Throws `error`
/// if they do not, or outside the curve.
inline double dense_loss(std::span<const dense_run> curve, double flops) {
    for (std::size_t i = 1; i < curve.size(); ++i) {
        const dense_run& a = curve[i - 1];
        const dense_run& b = curve[i];
        if (!(0 < a.flops && a.flops < b.flops)) throw error("the dense curve does not rise in FLOPs: sort its runs");
        if (a.flops <= flops && flops <= b.flops) {
            const double t = std::log(flops / a.flops) / std::log(b.flops / a.flops);
            return t == 1 ? b.loss : a.loss + t * (b.loss - a.loss);
        }
    }
    throw error(detail::text_of("no dense run on both sides of %.4g FLOPs: train a dense reference there", flops));
}

/// A measured residual (Eq. 11).
inline double matched_residual(double loss, double flops, std::span<const dense_run> curve) {
    return loss - dense_loss(curve, flops);
}

// ---- observed residuals ---------------------------------------------------------------------------------------------

/// A measured residual and where it was measured.
struct observed_residual {
    law_point at{};
    double residual = 0;
};

/// Root mean square error of a law on observed residuals.
inline double rmse_of(std::span<const observed_residual> observed, const residual_law& law = {}) {
    if (observed.empty()) throw error("no observed residuals: the error of a law needs at least one");
    double sum = 0;
    for (const observed_residual& o : observed) {
        const double miss = residual(o.at, law) - o.residual;
        sum += miss * miss;
    }
    return std::sqrt(sum / static_cast<double>(observed.size()));
}

/// The law with the weight v >= 0 of its exposure term (Eq. 22) that fits best, everything else kept. v = 0 is among
/// the candidates, so the error is never above that of the law without the term (the paper prints .01349 above
/// .008758).
inline residual_law with_exposure(std::span<const observed_residual> observed, residual_law law) {
    law.v = 0;
    double both = 0;
    double own = 0;
    for (const observed_residual& o : observed) {
        const double penalty = exposure_penalty(o.at, law);
        both += penalty * (o.residual - residual(o.at, law));
        own += penalty * penalty;
    }
    if (own > 0) law.v = std::max(0.0, both / own);
    return law;
}

// ---- time -----------------------------------------------------------------------------------------------------------

/// Training time relative to a reference run (Eq. 41), from tokens relative to its tokens and from measured speeds.
constexpr double relative_time(double token_ratio, double tokens_per_second, double reference_tokens_per_second) {
    return token_ratio * reference_tokens_per_second / tokens_per_second;
}

/// A design with its measured speed.
struct timed_design {
    law_point at{};
    double flops_per_token = 0;    ///< in the convention of the dense curve
    double tokens_per_second = 0;  ///< measured
};

/// Loss after `seconds` of training (Eq. 37): the dense curve at the FLOPs that the design delivers in that time, plus
/// the law. To rank designs by time, compare this.
inline double loss_after(double seconds, const timed_design& design, std::span<const dense_run> curve,
                         const residual_law& law = {}) {
    const double flops = seconds * design.tokens_per_second * design.flops_per_token;
    return dense_loss(curve, flops) + residual(design.at, law);
}

}  // namespace sdepth::inline v0
