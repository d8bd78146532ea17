// SPDX-License-Identifier: MIT
// Arguments of recurrent mixers. Rank 5.
//
// `first[b, i]` is the row at which the document of row i starts: recurrences and convolutions begin anew there. Null:
// one document a sequence. A state, where one is given, is what the document of row 0 brought along; the operation
// leaves in it what the last live row's document takes away. Dead rows change no state and are neither read nor
// written. Backward operations start from no state. Every mixer has two forward operations: a parallel form by chunks
// of rows, for training and prefill, and the recurrence itself, row after row (`_step`). They agree for every length of
// chunk.
#pragma once

#include "sdepth/choices.hpp"
#include "sdepth/rows.hpp"

namespace sdepth::inline v0 {

/// Rows that a parallel form takes at a time where nobody says otherwise.
inline constexpr int recurrent_chunk = 64;

/// y_i = silu(bias + sum_t weight[:, w - 1 - t] x_{i - t}), each channel apart, over rows of the same document.
template <class P>
struct ShortConvArgs {
    batch_rows rows;                             // N = rows.capacity()
    int channels = 0;                            // C
    int width = 0;                               // w
    const int* first = nullptr;                  // [N] or null
    const typename P::activation* x = nullptr;   // [N, C]
    const typename P::master* weight = nullptr;  // [C, w]
    const typename P::master* bias = nullptr;    // [C] or null
    typename P::activation* tail = nullptr;      // [B, w - 1, C], the last inputs, oldest first; null: none
    typename P::activation* y = nullptr;         // [N, C]
};

template <class P>
struct ShortConvBackwardArgs {
    ShortConvArgs<P> forward;                        // y is not read
    const typename P::activation* grad_y = nullptr;  // [N, C]
    typename P::activation* grad_x = nullptr;        // [N, C], overwritten
    typename P::gradient* grad_weight = nullptr;     // [C, w], added to
    typename P::gradient* grad_bias = nullptr;       // [C], added to; null without a bias
};

/// Where a silu gate stands to a norm.
enum class gate_place {
    before,  ///< y = weight * norm(x silu(gate)), Mamba-2
    after    ///< y = weight * norm(x) silu(gate), gated delta rule
};

/// RMS norm of each group of a row, with a gate. Without a gate the norm alone.
template <class P>
struct GatedNormArgs {
    batch_rows rows;  // N = rows.capacity()
    int groups = 1;   // G
    int width = 0;    // w, of a group
    gate_place place = gate_place::before;
    double epsilon = 1e-6;
    const typename P::activation* x = nullptr;     // [N, G, w]
    const typename P::activation* gate = nullptr;  // [N, G, w] or null
    const typename P::master* weight = nullptr;    // [w], of every group
    typename P::activation* y = nullptr;           // [N, G, w]
    typename P::sum* rstd = nullptr;               // [N, G], kept for the backward
};

template <class P>
struct GatedNormBackwardArgs {
    GatedNormArgs<P> forward;                        // y is not read
    const typename P::activation* grad_y = nullptr;  // [N, G, w]
    typename P::activation* grad_x = nullptr;        // [N, G, w], overwritten
    typename P::activation* grad_gate = nullptr;     // [N, G, w], overwritten; null without a gate
    typename P::gradient* grad_weight = nullptr;     // [w], added to
};

/// S = l S + f(k) v', z = l z + f(k), y = f(q)' S / (f(q)' z + epsilon), l = sigmoid(gate), 1 without gates.
template <class P>
struct LinearAttentionArgs {
    batch_rows rows;    // N = rows.capacity()
    int heads = 0;      // H
    int key_dim = 0;    // a
    int value_dim = 0;  // b
    feature_map map = feature_map::elu_plus_one;
    double epsilon = 1e-6;
    int chunk = recurrent_chunk;                   // of the parallel form
    const int* first = nullptr;                    // [N] or null
    const typename P::activation* q = nullptr;     // [N, H, a]
    const typename P::activation* k = nullptr;     // [N, H, a]
    const typename P::activation* v = nullptr;     // [N, H, b]
    const typename P::activation* gate = nullptr;  // [N, H] or null
    typename P::sum* state = nullptr;              // [B, H, a, b + 1], S and then z as the last column; or null
    typename P::activation* y = nullptr;           // [N, H, b]
};

template <class P>
struct LinearAttentionBackwardArgs {
    LinearAttentionArgs<P> forward;                  // y is not read
    const typename P::activation* grad_y = nullptr;  // [N, H, b]
    typename P::activation* grad_q = nullptr;        // [N, H, a], overwritten, like the others
    typename P::activation* grad_k = nullptr;        // [N, H, a]
    typename P::activation* grad_v = nullptr;        // [N, H, b]
    typename P::activation* grad_gate = nullptr;     // [N, H]; null without gates
};

/// State-space duality (Mamba-2), each head with one decay: h = e^(step a) h + step B x', y = h' C + D x,
/// step = softplus(dt + dt_bias), a = -exp(a_log). Head n reads B and C of group floor(n G / H).
template <class P>
struct SsdArgs {
    batch_rows rows;                              // N = rows.capacity()
    int heads = 0;                                // H
    int head_dim = 0;                             // p
    int groups = 1;                               // G, divides H
    int states = 0;                               // S
    int chunk = recurrent_chunk;                  // of the parallel form
    const int* first = nullptr;                   // [N] or null
    const typename P::activation* xbc = nullptr;  // [N, H p + 2 G S]: x, B, C
    const typename P::activation* dt = nullptr;   // [N, H]
    const typename P::master* dt_bias = nullptr;  // [H]
    const typename P::master* a_log = nullptr;    // [H]
    const typename P::master* skip = nullptr;     // [H], D
    typename P::sum* state = nullptr;             // [B, H, S, p] or null
    typename P::activation* y = nullptr;          // [N, H, p]
};

template <class P>
struct SsdBackwardArgs {
    SsdArgs<P> forward;                              // y is not read
    const typename P::activation* grad_y = nullptr;  // [N, H, p]
    typename P::activation* grad_xbc = nullptr;      // [N, H p + 2 G S], overwritten
    typename P::activation* grad_dt = nullptr;       // [N, H], overwritten
    typename P::gradient* grad_dt_bias = nullptr;    // [H], added to, like the others
    typename P::gradient* grad_a_log = nullptr;      // [H]
    typename P::gradient* grad_skip = nullptr;       // [H]
};

/// Gated delta rule: S = e^g S (I - b k k') + b v k', y = S q, with g = -exp(a_log) softplus(decay + dt_bias),
/// b = sigmoid(strength), q and k divided by sqrt(their squares + epsilon). Value head n reads key head floor(n H / M).
template <class P>
struct GatedDeltaArgs {
    batch_rows rows;      // N = rows.capacity()
    int heads = 0;        // H
    int value_heads = 0;  // M, a multiple of H
    int key_dim = 0;      // a
    int value_dim = 0;    // b
    double epsilon = 1e-6;
    int chunk = recurrent_chunk;                       // of the parallel form
    const int* first = nullptr;                        // [N] or null
    const typename P::activation* q = nullptr;         // [N, H, a]
    const typename P::activation* k = nullptr;         // [N, H, a]
    const typename P::activation* v = nullptr;         // [N, M, b]
    const typename P::activation* decay = nullptr;     // [N, M]
    const typename P::activation* strength = nullptr;  // [N, M]
    const typename P::master* dt_bias = nullptr;       // [M]
    const typename P::master* a_log = nullptr;         // [M]
    typename P::sum* state = nullptr;                  // [B, M, a, b], S'; or null
    typename P::activation* y = nullptr;               // [N, M, b]
};

template <class P>
struct GatedDeltaBackwardArgs {
    GatedDeltaArgs<P> forward;                        // y is not read
    const typename P::activation* grad_y = nullptr;   // [N, M, b]
    typename P::activation* grad_q = nullptr;         // [N, H, a], overwritten, like the next ones
    typename P::activation* grad_k = nullptr;         // [N, H, a]
    typename P::activation* grad_v = nullptr;         // [N, M, b]
    typename P::activation* grad_decay = nullptr;     // [N, M]
    typename P::activation* grad_strength = nullptr;  // [N, M]
    typename P::gradient* grad_dt_bias = nullptr;     // [M], added to
    typename P::gradient* grad_a_log = nullptr;       // [M], added to
};

/// Selective scan (Mamba), each channel and state apart: h = e^(step a) h + step B x, y = sum over states of C h + D x,
/// step = softplus(dt), a = -exp(a_log).
template <class P>
struct SelectiveScanArgs {
    batch_rows rows;                             // N = rows.capacity()
    int channels = 0;                            // C
    int states = 0;                              // S
    int chunk = recurrent_chunk;                 // of the parallel form
    const int* first = nullptr;                  // [N] or null
    const typename P::activation* x = nullptr;   // [N, C]
    const typename P::activation* dt = nullptr;  // [N, C], with its bias
    const typename P::activation* bc = nullptr;  // [N, 2 S]: B, C
    const typename P::master* a_log = nullptr;   // [C, S]
    const typename P::master* skip = nullptr;    // [C], D
    typename P::sum* state = nullptr;            // [B, C, S] or null
    typename P::activation* y = nullptr;         // [N, C]
};

template <class P>
struct SelectiveScanBackwardArgs {
    SelectiveScanArgs<P> forward;                    // y is not read
    const typename P::activation* grad_y = nullptr;  // [N, C]
    typename P::activation* grad_x = nullptr;        // [N, C], overwritten, like the next two
    typename P::activation* grad_dt = nullptr;       // [N, C]
    typename P::activation* grad_bc = nullptr;       // [N, 2 S]
    typename P::gradient* grad_a_log = nullptr;      // [C, S], added to
    typename P::gradient* grad_skip = nullptr;       // [C], added to
};

/// Diagonal real S4, each channel and state apart, by zero-order hold: a = -exp(a_log), step = exp(log_step),
/// h = e^(step a) h + (e^(step a) - 1) / a b x, y = sum over states of c h + skip x. The parallel form is a
/// convolution.
template <class P>
struct S4Args {
    batch_rows rows;                               // N = rows.capacity()
    int channels = 0;                              // C
    int states = 0;                                // S
    int chunk = recurrent_chunk;                   // of the parallel form
    const int* first = nullptr;                    // [N] or null
    const typename P::activation* x = nullptr;     // [N, C]
    const typename P::master* a_log = nullptr;     // [C, S]
    const typename P::master* b = nullptr;         // [C, S]
    const typename P::master* c = nullptr;         // [C, S]
    const typename P::master* skip = nullptr;      // [C], D
    const typename P::master* log_step = nullptr;  // [C]
    typename P::sum* state = nullptr;              // [B, C, S] or null
    typename P::activation* y = nullptr;           // [N, C]
};

template <class P>
struct S4BackwardArgs {
    S4Args<P> forward;                               // y is not read
    const typename P::activation* grad_y = nullptr;  // [N, C]
    typename P::activation* grad_x = nullptr;        // [N, C], overwritten
    typename P::gradient* grad_a_log = nullptr;      // [C, S], added to, like the others
    typename P::gradient* grad_b = nullptr;          // [C, S]
    typename P::gradient* grad_c = nullptr;          // [C, S]
    typename P::gradient* grad_skip = nullptr;       // [C]
    typename P::gradient* grad_log_step = nullptr;   // [C]
};

}  // namespace sdepth::inline v0
