// SPDX-License-Identifier: MIT
// Arguments of query and key preparation: RMS norm, then rotary phases. Rank 5.
#pragma once

#include "sdepth/choices.hpp"
#include "sdepth/rows.hpp"

namespace sdepth::inline v0 {

/// y = rotate(norm(x)). Rotary pairs the elements c and c + h/2 of a head and turns them by
/// position * base^(-2c/h) (Su et al. 2021); position = positions[row], or the row's own index in its sequence.
template <class P>
struct QkPrepareArgs {
    batch_rows rows;   // N = rows.capacity()
    int heads = 0;     // H
    int head_dim = 0;  // h
    qk_norm norm = qk_norm::per_head;
    double epsilon = 1e-6;
    bool rotary = true;
    double base = 1e6;

    const typename P::activation* x = nullptr;   // [N, H, h]
    const typename P::master* weight = nullptr;  // [h] per head, [H h] full width; null without a norm
    const int* positions = nullptr;              // [N] or null
    typename P::activation* y = nullptr;         // [N, H, h]
    typename P::sum* rstd = nullptr;             // [N, H] per head, [N] full width; kept for the backward
};

template <class P>
struct QkPrepareBackwardArgs {
    QkPrepareArgs<P> forward;                        // y is not read
    const typename P::activation* grad_y = nullptr;  // [N, H, h]
    typename P::activation* grad_x = nullptr;        // [N, H, h], overwritten; may be grad_y
    typename P::gradient* grad_weight = nullptr;     // added to; null without a norm
};

}  // namespace sdepth::inline v0
