// SPDX-License-Identifier: MIT
// Arguments of the optimiser's operations on one tensor (or several of one shape). Rank 5.
#pragma once

#include <cmath>

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

/// sum += squares of `count` gradients, in double.
template <class P>
struct SquaresArgs {
    long long count = 0;
    const typename P::gradient* grad = nullptr;
    double* sum = nullptr;
};

/// AdamW (Loshchilov and Hutter 2019): m, v moving averages of grad_scale * grad, bias-corrected;
/// w -= rate (m' / (sqrt(v') + epsilon) + decay w).
template <class P>
struct AdamwArgs {
    long long count = 0;
    double rate = 0;
    double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, decay = 0;
    long long step = 1;                    // from 1, of the bias corrections
    double grad_scale = 1;                 // clipping
    typename P::master* master = nullptr;  // w
    typename P::weight* weight = nullptr;  // its rounded copy, written as well; null where there is none
    const typename P::gradient* grad = nullptr;
    typename P::sum* first = nullptr;   // m
    typename P::sum* second = nullptr;  // v
};

/// Muon (Jordan et al. 2024; RMS match as Liu et al. 2025): momentum, Nesterov, Newton-Schulz orthogonalisation of each
/// [rows, cols] matrix in five steps, update scaled to a root mean square of match * rate (muon_scale).
template <class P>
struct MuonArgs {
    long long matrices = 1;
    int rows = 0, cols = 0;
    double rate = 0;
    double momentum = 0.95, decay = 0, match = 0.2;
    int steps = 5;
    bool nesterov = true;
    double grad_scale = 1;
    typename P::master* master = nullptr;        // [matrices, rows, cols]
    typename P::weight* weight = nullptr;        // its rounded copy, written as well; null where there is none
    const typename P::gradient* grad = nullptr;  // the same
    typename P::sum* first = nullptr;            // momentum, the same
    typename P::sum* scratch = nullptr;          // muon_scratch(rows, cols) numbers
};

/// Numbers of scratch that one matrix needs: the iterate, its Gram matrix, and two products.
constexpr long long muon_scratch(long long rows, long long cols) {
    const long long least = rows < cols ? rows : cols;
    return 2 * rows * cols + 2 * least * least;
}

/// What the orthogonalised matrix X is multiplied by, with `squares` = sum of X^2, before the rate. Exact singular
/// values 1 would need match * sqrt(max(rows, cols)); five steps leave them between .68 and 1.2, so the rest of the way
/// to a root mean square of `match` is measured. It is at most 3/2: a matrix of low rank is not blown up.
template <class P>
double muon_scale(const MuonArgs<P>& a, double squares) {
    const double least = a.rows < a.cols ? a.rows : a.cols, most = a.rows < a.cols ? a.cols : a.rows;
    const double rest = squares > 0 ? std::sqrt(least / squares) : 1;
    return a.match * std::sqrt(most) * (rest < 1.5 ? rest : 1.5);
}

}  // namespace sdepth::inline v0
