// SPDX-License-Identifier: MIT
// The residual law of the X-MoD paper (Eq. 10-31, Table 8): its terms, its optimum, its FLOP model, in plain doubles.
// Knows no formula and no model (`planner.hpp`), no error and no domain (`law_estimate.hpp`), no measured run
// (`law_runs.hpp`). Rank 0.
#pragma once

#include <algorithm>
#include <limits>
#include <span>

#include "sdepth/power.hpp"

namespace sdepth::inline v0 {

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
