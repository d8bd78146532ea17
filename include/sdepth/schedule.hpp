// SPDX-License-Identifier: MIT
// The learning rate as a closed form of the step: nothing to save, nothing that a resume could restart. Rank 0.
#pragma once

#include <cmath>

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

/// Linear warm-up, then half a cosine down to a share of the peak, as the X-MoD paper trains.
struct cosine_schedule {
    double peak = 1e-3;
    double warmup_share = 0.01;  ///< of all steps; at least one step
    double final_share = 0.1;    ///< of the peak, at the last step
    long long steps = 1;         ///< of the whole run

    /// Learning rate of step `step`, counted from 0.
    double at(long long step) const {
        const double share = warmup_share * static_cast<double>(steps);
        const double warmup = share < 1 ? 1 : std::floor(share);
        const auto now = static_cast<double>(step);
        if (now < warmup) return peak * (now + 1) / warmup;
        const double rest = static_cast<double>(steps - 1) - warmup;
        const double progress = rest <= 0 ? 1 : (now - warmup) / rest;
        const double cosine = 0.5 * (1 + std::cos(3.14159265358979323846 * (progress > 1 ? 1 : progress)));
        return peak * (final_share + (1 - final_share) * cosine);
    }
};

}  // namespace sdepth::inline v0
