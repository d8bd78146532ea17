// SPDX-License-Identifier: MIT
// Arguments of MoDA's depth branch (arXiv 2603.15619): each token also attends to its own keys and values of earlier
// layers, under one softmax with the sequence. No implementation. Rank 5.
#pragma once

#include <cstdint>

#include "sdepth/config.hpp"
#include "sdepth/ops/attention.hpp"
#include "sdepth/rows.hpp"

namespace sdepth::inline v0 {

/// Adds slots to the softmax of `o` and `lse`: on entry they are the sequence branch's (AttentionArgs), on return the
/// joint output and log-sum-exp, so that attention_backward gives the sequence branch's exact share of the gradients.
/// Query head a reads KV head a / (H / Hkv). Token t sees its own slots 0 .. used - 1 whose mask is not 0, none else's.
/// Keys and queries of one token have one position, so both are rotated or neither. Dead tokens are left alone.
template <class T>
struct DepthAttentionArgs {
    int batch = 1;      // B
    int heads = 1;      // H
    int kv_heads = 1;   // Hkv, divides H
    int head_dim = 64;  // h
    rows tokens;        // T = tokens.capacity
    int slots = 0;      // S, slots that each token has memory for
    int used = 0;       // slots written so far
    double scale = 1;   // of the logits, the sequence branch's

    const T* q = nullptr;                // [B, T, H, h]
    const T* slot = nullptr;             // [B, T, S, Hkv, 2, h], keys then values
    const std::uint8_t* mask = nullptr;  // [B, T, S] or null; 0 where the token skipped the layer: never read
    T* o = nullptr;                      // [B, T, H, h]
    attention_sum_t<T>* lse = nullptr;   // [B, T, H]
    int q_row = 0;                       // elements from row to row of q; 0 = packed, H h

    SDEPTH_HOST_DEVICE constexpr int q_stride() const { return q_row != 0 ? q_row : heads * head_dim; }
};

/// The depth branch's share of the gradients, from joint o and lse. With P = exp(S - lse), D = o . grad_o,
/// dS = P (grad_o v^T - D): adds scale dS k to grad_q, which has q's row stride. The slots' gradients either at once
/// into grad_slot, or, where later layers read the same slots too, later: P and dS are kept and
/// depth_slot_gradients sums over the readers, without ever reading a gradient back.
template <class T>
struct DepthAttentionBackwardArgs {
    DepthAttentionArgs<T> forward;
    const T* grad_o = nullptr;  // [B, T, H, h], packed
    T* grad_q = nullptr;        // [B, T, H, h], added to
    T* grad_slot = nullptr;     // [B, T, S, Hkv, 2, h] or null; slots 0 .. used - 1 overwritten, zero for dead tokens
    T* p = nullptr;             // [B, T, S, H] or null
    T* ds = nullptr;            // [B, T, S, H], null like p
};

/// Gradients of slots begin .. end - 1 from all layers that read them:
/// grad_k = scale sum over readers of dS^T q,  grad_v = sum over readers of P^T grad_o.  Zero for dead tokens.
template <class T>
struct DepthSlotGradientArgs {
    static constexpr int most_readers = 64;
    struct reader {
        const T *q, *grad_o, *p, *ds;  // of one layer, as in DepthAttentionBackwardArgs
    };
    int batch = 1, heads = 1, kv_heads = 1, head_dim = 64;
    rows tokens;
    int slots = 0;
    double scale = 1;
    int q_row = 0;
    int begin = 0, end = 0;
    int readers = 0;
    reader reads[most_readers] = {};
    T* grad_slot = nullptr;  // [B, T, S, Hkv, 2, h]

    SDEPTH_HOST_DEVICE constexpr int q_stride() const { return q_row != 0 ? q_row : heads * head_dim; }
};

}  // namespace sdepth::inline v0
