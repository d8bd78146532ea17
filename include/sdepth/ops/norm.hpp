// SPDX-License-Identifier: MIT
// Arguments of RMS normalisation, and of what precedes it: a gather or a residual sum. Backends have each of the two
// with the norm of its result as one operation, gather_rms_norm(GatherArgs, RmsNormArgs) and add_rms_norm(AddArgs,
// RmsNormArgs). Rank 5.
#pragma once

#include "sdepth/rows.hpp"

namespace sdepth::inline v0 {

/// y = weight * x * rstd, rstd = 1 / sqrt(mean(x^2) + epsilon). Dead rows are neither read nor written.
/// Source: Zhang and Sennrich 2019.
template <class P>
struct RmsNormArgs {
    batch_rows rows;  // N = rows.capacity()
    int width = 0;    // d
    double epsilon = 1e-6;

    const typename P::activation* x = nullptr;   // [N, d]
    const typename P::master* weight = nullptr;  // [d]
    typename P::activation* y = nullptr;         // [N, d]
    typename P::sum* rstd = nullptr;             // [N], kept for the backward
};

/// Gradient of RMS normalisation: grad_x = rstd (g - x rstd^2 mean(g x)), g = weight grad_y.
template <class P>
struct RmsNormBackwardArgs {
    RmsNormArgs<P> forward;                          // y is not read
    const typename P::activation* grad_y = nullptr;  // [N, d]
    typename P::activation* grad_x = nullptr;        // [N, d]
    bool adds_to_grad_x = false;                     // else overwritten
    typename P::activation* also = nullptr;          // [N, d], what grad_x became is added to it; null: nothing is
    typename P::gradient* grad_weight = nullptr;     // [d], added to
};

/// Chosen rows of a batch, packed: out[b, j] = x[b, ids[b, j]].
template <class P>
struct GatherArgs {
    batch_rows rows;                            // chosen rows, N = rows.capacity()
    int sequence = 0;                           // L, rows of x in a sequence
    int width = 0;                              // d
    const int* ids = nullptr;                   // [B, rows.each.capacity], rising in each sequence
    const typename P::activation* x = nullptr;  // [B, L, d]
    typename P::activation* out = nullptr;      // [N, d]
};

/// The same map backwards: x[b, ids[b, j]] = out[b, j], or += with `adds`. The ids of a sequence differ, so nothing
/// meets.
template <class P>
struct ScatterArgs {
    batch_rows rows;
    int sequence = 0;
    int width = 0;
    bool adds = false;
    const int* ids = nullptr;
    const typename P::activation* out = nullptr;  // [N, d]
    typename P::activation* x = nullptr;          // [B, L, d]
};

/// sum = x + a. Dead rows are neither read nor written.
template <class P>
struct AddArgs {
    batch_rows rows;                            // N = rows.capacity()
    int width = 0;                              // d
    const typename P::activation* x = nullptr;  // [N, d]
    const typename P::activation* a = nullptr;  // [N, d]
    typename P::activation* sum = nullptr;      // [N, d]; may be x or a
};

}  // namespace sdepth::inline v0
