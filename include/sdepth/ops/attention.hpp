// SPDX-License-Identifier: MIT
// Arguments of attention and the rule that says which keys a query row sees, the same for every backend; no
// implementation. Rank 5.
#pragma once

#include <type_traits>

#include "sdepth/config.hpp"
#include "sdepth/rows.hpp"

namespace sdepth::inline v0 {

/// Type of the log-sum-exp and of sums for storage type T: fp64 for fp64, else fp32.
template <class T>
using attention_sum_t = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// Softmax attention with grouped queries: o = softmax(scale q k^T) v over the visible keys, lse its log-sum-exp
/// (natural). Query head a reads KV head a / (H / Hkv). B sequences, Tq query rows, Tk key rows, head size h.
///
/// Visibility. With `first` and `last`, query row i of sequence b sees the key rows first[b,i] .. last[b,i] and none if
/// last < first: documents, subsets, windows, selected queries on all keys. Without, plain: every live key or, if
/// `causal`, those up to i + (live keys - live queries), of them the last `window` if window > 0.
/// A row that sees nothing and a dead row give o = 0, lse = -infinity.
template <class T>
struct AttentionArgs {
    int batch = 1;      // B
    int heads = 1;      // H
    int kv_heads = 1;   // Hkv, divides H
    int head_dim = 64;  // h
    rows queries;       // Tq = queries.capacity
    rows keys;          // Tk = keys.capacity
    double scale = 1;   // of the logits, usually 1 / sqrt(h)
    bool causal = true;
    int window = 0;

    const T* q = nullptr;               // [B, Tq, H, h]
    const T* k = nullptr;               // [B, Tk, Hkv, h]
    const T* v = nullptr;               // [B, Tk, Hkv, h]
    T* o = nullptr;                     // [B, Tq, H, h]
    attention_sum_t<T>* lse = nullptr;  // [B, Tq, H]
    const int* first = nullptr;         // [B, Tq] or null
    const int* last = nullptr;          // [B, Tq], null like `first`
    int q_row = 0;                      // elements from row to row of q; 0 = packed, H h
    int kv_row = 0;                     // the same of k and v; 0 = packed, Hkv h

    SDEPTH_HOST_DEVICE constexpr int q_stride() const { return q_row != 0 ? q_row : heads * head_dim; }
    SDEPTH_HOST_DEVICE constexpr int kv_stride() const { return kv_row != 0 ? kv_row : kv_heads * head_dim; }
};

/// Gradients of attention. `forward.o` and `forward.lse` are inputs and may be a joint output and log-sum-exp of
/// several branches (MoDA): the gradients are then this branch's share. All gradients are overwritten; those of dead
/// rows are zero. grad_q has the row stride of q, grad_k and grad_v that of k and v.
template <class T>
struct AttentionBackwardArgs {
    AttentionArgs<T> forward;
    const T* grad_o = nullptr;  // [B, Tq, H, h], packed
    T* grad_q = nullptr;        // [B, Tq, H, h]
    T* grad_k = nullptr;        // [B, Tk, Hkv, h]
    T* grad_v = nullptr;        // [B, Tk, Hkv, h]
};

/// A range of key rows, both ends included; empty if last < first.
struct key_range {
    int first = 0;
    int last = -1;
};

/// Keys that query row i of sequence b sees, by the rule above. `first`, `last`: as in AttentionArgs, may be null.
SDEPTH_HOST_DEVICE constexpr key_range visible_keys(int i, int live_queries, int live_keys, bool causal, int window,
                                                    const int* first_of_row, const int* last_of_row) {
    if (i >= live_queries) return {0, -1};
    const int shift = live_keys - live_queries;
    int lo = first_of_row != nullptr ? first_of_row[i] : window > 0 ? i + shift - window + 1 : 0;
    int hi = last_of_row != nullptr ? last_of_row[i] : causal ? i + shift : live_keys - 1;
    if (lo < 0) lo = 0;
    if (hi > live_keys - 1) hi = live_keys - 1;
    return hi < lo ? key_range{0, -1} : key_range{lo, hi};
}

}  // namespace sdepth::inline v0
