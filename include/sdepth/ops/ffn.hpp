// SPDX-License-Identifier: MIT
// Arguments of the non-linear middle of feed-forward parts. Rank 5.
#pragma once

#include "sdepth/choices.hpp"
#include "sdepth/rows.hpp"

namespace sdepth::inline v0 {

/// act = silu(gate) * up (Shazeer 2020).
template <class P>
struct SwigluArgs {
    batch_rows rows;                               // N = rows.capacity()
    int hidden = 0;                                // F
    const typename P::activation* gate = nullptr;  // [N, F]
    const typename P::activation* up = nullptr;    // [N, F]
    typename P::activation* act = nullptr;         // [N, F]
};

template <class P>
struct SwigluBackwardArgs {
    SwigluArgs<P> forward;                             // act is not read
    const typename P::activation* grad_act = nullptr;  // [N, F]
    typename P::activation* grad_gate = nullptr;       // [N, F], overwritten
    typename P::activation* grad_up = nullptr;         // [N, F], overwritten; may be grad_act
};

/// act = f(x).
template <class P>
struct ActivationArgs {
    batch_rows rows;  // N = rows.capacity()
    int hidden = 0;   // F
    activation kind = activation::gelu;
    const typename P::activation* x = nullptr;  // [N, F]
    typename P::activation* act = nullptr;      // [N, F]
};

template <class P>
struct ActivationBackwardArgs {
    ActivationArgs<P> forward;                         // act is not read
    const typename P::activation* grad_act = nullptr;  // [N, F]
    typename P::activation* grad_x = nullptr;          // [N, F], overwritten; may be grad_act
};

}  // namespace sdepth::inline v0
