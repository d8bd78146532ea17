// SPDX-License-Identifier: MIT
// Arguments of products with a weight matrix. Rank 5.
#pragma once

#include "sdepth/rows.hpp"

namespace sdepth::inline v0 {

/// y = x W' + bias. What dead rows hold does not matter, before and after: a backend may compute them too.
template <class P>
struct LinearArgs {
    batch_rows rows;  // N = rows.capacity()
    int inputs = 0;   // I
    int outputs = 0;  // O

    const typename P::activation* x = nullptr;   // [N, I]
    const typename P::weight* weight = nullptr;  // [O, I]
    const typename P::master* bias = nullptr;    // [O] or null
    typename P::activation* y = nullptr;         // [N, O]
};

/// Gradients of a linear map. Gradients of weights add to those of the micro-batches before, where there are any.
template <class P>
struct LinearBackwardArgs {
    LinearArgs<P> forward;                           // y is not read; dead rows of x may become zero
    const typename P::activation* grad_y = nullptr;  // [N, O], dead rows as those of x
    typename P::activation* grad_x = nullptr;        // [N, I] or null where nobody needs it
    bool adds_to_grad_x = false;                     // else overwritten
    typename P::gradient* grad_weight = nullptr;     // [O, I], added to,
    bool adds_to_grad_weight = true;                 // else overwritten
    typename P::gradient* grad_bias = nullptr;       // [O], added to; null without a bias
};

}  // namespace sdepth::inline v0
