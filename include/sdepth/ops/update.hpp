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

/// What changes from one step to the next. It lives in the backend's memory, where the caller puts it before the step,
/// so that one recorded step serves all.
struct update_inputs {
    double rate = 0;
    long long step = 1;  ///< counted from 1
};

/// What the updates of all tensors share, in the backend's memory.
struct update_scalars {
    double rate = 0;
    double grad_scale = 1;              ///< clipping
    double correct1 = 1, correct2 = 1;  ///< 1 / (1 - beta^step), for the two moments of AdamW
    double norm = 0;                    ///< of all gradients together, before clipping
    int finite = 1;                     ///< 0: loss or gradient is not finite, and no update changes anything
    long long bad_step = 0;             ///< first step that was not finite; then none is until this is 0 again
};

/// Writes the scalars of a step.
struct BeginUpdateArgs {
    double beta1 = 0.9, beta2 = 0.95;
    double clip = 0;  // largest norm of all gradients together; 0 = no clipping
    const update_inputs* inputs = nullptr;
    const double* squares = nullptr;    // sum over all gradients
    const double* loss = nullptr;       // looked at: is it finite?
    update_scalars* scalars = nullptr;  // overwritten; a bad step stays
};

/// The scalars that BeginUpdateArgs asks for.
SDEPTH_HOST_DEVICE inline update_scalars scalars_of(const BeginUpdateArgs& a) {
    update_scalars s;
    const auto step = static_cast<double>(a.inputs->step);
    s.rate = a.inputs->rate;
    s.norm = std::sqrt(*a.squares);
    if (a.clip > 0 && s.norm > a.clip) s.grad_scale = a.clip / s.norm;
    s.correct1 = 1 / (1 - std::pow(a.beta1, step));
    s.correct2 = 1 / (1 - std::pow(a.beta2, step));
    s.bad_step = a.scalars->bad_step;
    if (s.bad_step == 0 && !(std::isfinite(*a.squares) && std::isfinite(*a.loss))) s.bad_step = a.inputs->step;
    s.finite = s.bad_step == 0 ? 1 : 0;
    return s;
}

/// AdamW (Loshchilov and Hutter 2019): m, v moving averages of grad_scale * grad, bias-corrected;
/// w -= share rate (m' / (sqrt(v') + epsilon) + decay w). One tensor in each of `layers` layers.
template <class P>
struct AdamwArgs {
    long long layers = 1, count = 0;  // tensors, numbers of one
    long long stride = 0;             // numbers from one tensor to the next,
    long long grad_stride = 0;        // in the gradients too; negative where they lie in reverse order
    long long second_stride = 0;      // and in v
    double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, decay = 0;
    double share = 1;  // of the step's rate
    const update_scalars* scalars = nullptr;
    typename P::master* master = nullptr;        // w, first layer
    typename P::weight* weight = nullptr;        // its rounded copy, written as well; null where there is none
    const typename P::gradient* grad = nullptr;  // first layer
    typename P::sum* first = nullptr;            // m, placed as w
    typename P::sum* second = nullptr;           // v
};

/// Muon (Jordan et al. 2024; RMS match as Liu et al. 2025): momentum, Nesterov, Newton-Schulz orthogonalisation of each
/// [rows, cols] matrix in five steps, update scaled to a root mean square of match * rate (muon_scale).
template <class P>
struct MuonArgs {
    long long layers = 1, matrices = 1;     // matrices of one layer, one after the other
    long long stride = 0, grad_stride = 0;  // numbers from layer to layer, as in AdamwArgs
    int rows = 0, cols = 0;
    double momentum = 0.95, decay = 0, match = 0.2;
    int steps = 5;
    bool nesterov = true;
    const update_scalars* scalars = nullptr;
    typename P::master* master = nullptr;        // [matrices, rows, cols], first layer
    typename P::weight* weight = nullptr;        // its rounded copy, written as well; null where there is none
    const typename P::gradient* grad = nullptr;  // the same, first layer
    typename P::sum* first = nullptr;            // momentum, placed as the weights
    typename P::activation* scratch = nullptr;   // together * muon_scratch(rows, cols) numbers
    int together = 1;                            // matrices that may be worked on at the same time
};

/// Numbers of scratch that one matrix needs: the iterate, its Gram matrix, two products, and sums. Multiples of 128, so
/// that matrices that follow one another are aligned in every type.
constexpr long long muon_scratch(long long rows, long long cols) {
    const long long least = rows < cols ? rows : cols;
    return 2 * ((rows * cols + 127) / 128 * 128) + 2 * ((least * least + 127) / 128 * 128) + 4096;
}

/// What the orthogonalised matrix X is multiplied by, with `squares` = sum of X^2, before the rate. Exact singular
/// values 1 would need match * sqrt(max(rows, cols)); five steps leave them between .68 and 1.2, so the rest of the way
/// to a root mean square of `match` is measured. It is at most 3/2: a matrix of low rank is not blown up.
template <class P>
SDEPTH_HOST_DEVICE double muon_scale(const MuonArgs<P>& a, double squares) {
    const double least = a.rows < a.cols ? a.rows : a.cols, most = a.rows < a.cols ? a.cols : a.rows;
    const double rest = squares > 0 ? std::sqrt(least / squares) : 1;
    return a.match * std::sqrt(most) * (rest < 1.5 ? rest : 1.5);
}

}  // namespace sdepth::inline v0
