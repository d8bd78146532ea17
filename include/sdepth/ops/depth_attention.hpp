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
/// Slots from .. to: shift `slot`, `mask` and gradients of slots by `from` slots. On o = 0 and lse = -infinity: the
/// depth branch alone.
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
    // Tokens that are some of the L rows which have slots, as in a sparse layer; both null and 0 where T = L.
    const int* ids = nullptr;  // [B, T], row of each token, no row twice in a sequence
    int sequence = 0;          // L: slot is [B, L, S, Hkv, 2, h], mask [B, L, S]

    SDEPTH_HOST_DEVICE constexpr int q_stride() const { return q_row != 0 ? q_row : heads * head_dim; }
};

/// The depth branch's share of the gradients, from joint o and lse. With P = exp(S - lse), D = o . grad_o,
/// dS = P (grad_o v^T - D): adds scale dS k to grad_q, which has q's row stride. The slots' gradients either at once
/// into grad_slot, where each row is a token; or, where other layers read the same slots too, added to slot_sum, which
/// every reader adds to in turn; or later: P and dS are kept and depth_slot_gradients sums over the readers, without
/// ever reading a gradient back.
template <class T>
struct DepthAttentionBackwardArgs {
    DepthAttentionArgs<T> forward;
    const T* grad_o = nullptr;  // [B, T, H, h], packed
    T* grad_q = nullptr;        // [B, T, H, h], added to
    T* grad_slot = nullptr;     // [B, T, S, Hkv, 2, h] or null, as with ids; 0 .. used - 1 overwritten, dead tokens 0
    T* p = nullptr;             // [B, T, S, H] or null
    T* ds = nullptr;            // [B, T, S, H], null like p
    attention_sum_t<T>* slot_sum = nullptr;  // [B, L, S, Hkv, 2, h] or null; added to for seen slots of live tokens
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

/// Products of query rows with slots in one block of a kernel: those that count, and those computed.
struct slot_products {
    long long seen, computed;
};
/// Of a block of `chunk` query rows, `group` heads of each of chunk / group tokens, against the `slots` slots of each
/// of these tokens. The share that counts is group / chunk: 1 / chunk without groups (arXiv 2603.15619, section 3), and
/// all where a block has one token, chunk = group, as here.
template <int chunk, int group>
constexpr slot_products block_slot_products(long long slots) {
    static_assert(group >= 1 && chunk % group == 0,
                  "sdepth: a block holds whole tokens; make chunk a multiple of group");
    return {chunk * slots, chunk * (chunk / group * slots)};
}

/// Writes keys and values of one layer's rows as slot `slot` of their positions, and marks it as written.
template <class P>
struct WriteSlotArgs {
    batch_rows rows;   // executed rows, N = rows.capacity()
    int sequence = 0;  // L
    int kv_heads = 1;  // Hkv
    int head_dim = 64;
    int slots = 0;           // S
    int slot = 0;            // below S
    bool seen = true;        // false: marked as not written, so that nobody reads it
    bool every_row = false;  // k and v are [B, L, Hkv, h], not [N, Hkv, h]

    const int* ids = nullptr;                   // [N], position of each row
    const typename P::activation* k = nullptr;  // [N, Hkv, h]
    const typename P::activation* v = nullptr;  // [N, Hkv, h]
    typename P::activation* memory = nullptr;   // [B, L, S, Hkv, 2, h]
    std::uint8_t* mask = nullptr;               // [B, L, S]
};

/// What the readers of a slot sent back to its keys and values, once all of them have added to slot_sum.
template <class P>
struct SlotGradientArgs {
    WriteSlotArgs<P> forward;                   // k, v, memory and mask are not read
    const typename P::sum* slot_sum = nullptr;  // [B, L, S, Hkv, 2, h]
    bool adds = false;                          // to grad_k and grad_v, else they are overwritten
    typename P::activation* grad_k = nullptr;   // as k
    typename P::activation* grad_v = nullptr;
};

/// Share of the probability that a joint softmax gives to slots: mass[a] += sum over live rows of
/// 1 - exp(sequence_lse - lse) for query head a; mass[H] += the same if all logits were equal, slots / (slots + keys);
/// mass[H + 1] += rows. A row that sees neither a key nor a slot adds 0.
template <class P>
struct DepthMassArgs {
    AttentionArgs<typename P::activation> attention;  // heads, rows, visibility; lse the joint one
    const typename P::sum* sequence_lse = nullptr;    // [B, Tq, H], before the slots
    slot_ranges seen;
    int slots = 0;                       // S
    int sequence = 0;                    // L
    const int* ids = nullptr;            // [B, Tq], row of each query
    const std::uint8_t* mask = nullptr;  // [B, L, S]
    double* mass = nullptr;              // [H + 2]
};

}  // namespace sdepth::inline v0
