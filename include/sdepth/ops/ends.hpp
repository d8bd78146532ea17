// SPDX-License-Identifier: MIT
// Arguments of the model's ends: embedding, and the output head with its cross-entropy. Rank 5.
#pragma once

#include "sdepth/rows.hpp"

namespace sdepth::inline v0 {

/// x[i] = table[tokens[i]]. Dead rows are not written.
template <class P>
struct EmbedArgs {
    batch_rows rows;                            // N = rows.capacity()
    int width = 0;                              // d
    int vocab = 0;                              // V
    const int* tokens = nullptr;                // [N], within 0 .. V - 1
    const typename P::weight* table = nullptr;  // [V, d]
    typename P::activation* x = nullptr;        // [N, d]
};

/// grad_table[tokens[i]] += grad_x[i], in order of i.
template <class P>
struct EmbedBackwardArgs {
    EmbedArgs<P> forward;                            // x is not read
    const typename P::activation* grad_x = nullptr;  // [N, d]
    typename P::gradient* grad_table = nullptr;      // [V, d], added to
};

/// Numbers from row to row of the logits in scratch: rows begin at multiples of 64, for products want aligned rows and
/// vocabularies have any size.
constexpr long long logit_stride(long long vocab) { return (vocab + 63) / 64 * 64; }

/// Cross-entropy of logits = y W', chunk by chunk: the logits of all rows exist at no time.
///
/// loss_sum += sum of -log softmax(logits)[target] over live rows whose target is not negative. With gradients,
/// grad_y = scale * d loss_sum / dy and grad_weight += the same of W, in the same pass.
template <class P>
struct HeadLossArgs {
    batch_rows rows;   // N = rows.capacity()
    int width = 0;     // d
    int vocab = 0;     // V
    double scale = 1;  // of the gradients, usually 1 / tokens of the optimiser step

    const typename P::activation* y = nullptr;    // [N, d], the normed rows; dead ones may become zero
    const typename P::weight* weight = nullptr;   // [V, d]
    const int* targets = nullptr;                 // [N], negative = no loss
    double* loss_sum = nullptr;                   // added to, in order of rows
    typename P::activation* grad_y = nullptr;     // [N, d], overwritten; null: loss only
    typename P::gradient* grad_weight = nullptr;  // [V, d], added to; null: loss only
    typename P::activation* logits = nullptr;     // scratch, [chunk, logit_stride(V)]
    int chunk = 0;                                // rows of the scratch, at least 1
};

}  // namespace sdepth::inline v0
