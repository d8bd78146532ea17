// SPDX-License-Identifier: MIT
// What the attention kernels ask of their arguments, checked before anything starts: a wrong pointer or stride would
// else show as an illegal access at some later call, or not at all. No CUDA here. Rank 5.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>

#include "sdepth/error.hpp"
#include "sdepth/ops/attention.hpp"
#include "sdepth/ops/depth_attention.hpp"
#include "sdepth/ops/rotary.hpp"

namespace sdepth::inline v0::on_cuda::detail {

/// Throws sdepth::error "`what`: `message`" unless `good`.
inline void ask(bool good, const char* what, const std::string& message) {
    if (!good) throw error(std::string(what) + ": " + message);
}

/// Kernels move 16 bytes at a time.
inline void check_pointer(const void* p, const char* what, const char* name) {
    ask(p != nullptr, what, std::string(name) + " is null; pass device memory of the documented shape");
    ask(reinterpret_cast<std::uintptr_t>(p) % 16 == 0, what,
        std::string(name) + " is not 16-byte aligned; start it at a multiple of 8 elements");
}
inline void check_row(int row, int heads, int head_dim, const char* what, const char* name) {
    ask(row == 0 || (row >= heads * head_dim && row % 8 == 0), what,
        std::string(name) + " is " + std::to_string(row) +
            "; use 0, or a multiple of 8 that no head passes, at least " + std::to_string(heads * head_dim));
}
inline void check_heads(int heads, int kv_heads, int head_dim, double scale, const char* what) {
    ask(head_dim == 64 || head_dim == 128, what,
        "head_dim " + std::to_string(head_dim) + " has no kernel; use 64 or 128");
    ask(heads >= 1 && kv_heads >= 1 && heads % kv_heads == 0, what,
        "heads must be a multiple of kv_heads, both positive; give each KV head the same number of query heads");
    ask(scale > 0 && std::isfinite(scale), what, "scale must be positive and finite; change the sign of q instead");
}

template <class T>
void check_sizes(const AttentionArgs<T>& a, const char* what) {
    check_heads(a.heads, a.kv_heads, a.head_dim, a.scale, what);
    ask((a.first == nullptr) == (a.last == nullptr), what,
        "first and last must both be given or both be null; pass the two arrays together");
    ask(a.window >= 0, what, "window is negative; use 0 for none");
    ask(a.window == 0 || (a.first == nullptr && a.causal), what,
        "window needs plain causal visibility; express other windows by first and last");
    ask(a.batch >= 1 && a.queries.capacity >= 1 && a.keys.capacity >= 1, what,
        "no rows; give at least one sequence with one query and one key row");
    check_row(a.q_row, a.heads, a.head_dim, what, "q_row");
    check_row(a.kv_row, a.kv_heads, a.head_dim, what, "kv_row");
}
template <class T>
void check_forward(const AttentionArgs<T>& a, const char* what) {
    check_sizes(a, what);
    check_pointer(a.q, what, "q"), check_pointer(a.k, what, "k"), check_pointer(a.v, what, "v");
    check_pointer(a.o, what, "o");
    ask(a.lse != nullptr, what, "lse is null; pass device memory of [B, Tq, H]");
}
/// All but grad_q.
template <class T>
void check_backward(const AttentionBackwardArgs<T>& g, const void* scratch, const char* what) {
    check_forward(g.forward, what);
    check_pointer(g.grad_o, what, "grad_o"), check_pointer(g.grad_k, what, "grad_k");
    check_pointer(g.grad_v, what, "grad_v"), check_pointer(scratch, what, "scratch");
}
/// That queries were prepared as prepared_attention_backward turns back.
template <class T, class P>
void check_prepared(const AttentionArgs<T>& a, const QkPrepareBackwardArgs<P>& queries, const char* what) {
    const QkPrepareArgs<P>& f = queries.forward;
    ask(f.norm != qk_norm::full_width, what, "norm of full width; turn it back by qk_prepare_backward");
    ask(f.heads == a.heads && f.head_dim == a.head_dim && f.rows.batch == a.batch &&
            f.rows.each.capacity == a.queries.capacity && f.rows.each.live == a.queries.live,
        what, "prepared queries have other sizes than attention's; give both the same rows and heads");
    ask(a.q_row == 0 || a.q_row == a.heads * a.head_dim, what, "q_row is not 0; pack the rows of prepared queries");
    check_pointer(queries.grad_x, what, "grad_x");
    if (f.norm == qk_norm::none) return;
    check_pointer(f.x, what, "x");
    ask(f.weight != nullptr && f.rstd != nullptr && queries.grad_weight != nullptr, what,
        "weight, rstd or grad_weight of the norm is null; pass all three");
}

/// Of depth_attention_forward; pointers only where there are slots.
template <class T>
void check_depth(const DepthAttentionArgs<T>& a, const char* what) {
    check_heads(a.heads, a.kv_heads, a.head_dim, a.scale, what);
    ask(a.heads / a.kv_heads <= 16, what,
        std::to_string(a.heads / a.kv_heads) + " query heads on a KV head have no kernel; use at most 16");
    ask(a.used >= 0 && a.used <= a.slots, what,
        "used must lie between 0 and slots; raise slots to what the layers write");
    ask(a.ids == nullptr || a.sequence >= 1, what, "ids without sequence; say how many rows have slots");
    ask(a.batch >= 1 && a.tokens.capacity >= 1, what, "no tokens; give at least one sequence of one token");
    check_row(a.q_row, a.heads, a.head_dim, what, "q_row");
    if (a.used == 0) return;
    check_pointer(a.q, what, "q"), check_pointer(a.slot, what, "slot"), check_pointer(a.o, what, "o");
    ask(a.lse != nullptr, what, "lse is null; pass device memory of [B, T, H]");
}
template <class T>
void check_depth_backward(const DepthAttentionBackwardArgs<T>& g, const char* what) {
    check_depth(g.forward, what);
    ask((g.p == nullptr) == (g.ds == nullptr), what,
        "p and ds must both be given or both be null; pass the two arrays together");
    ask(g.forward.ids == nullptr || g.grad_slot == nullptr, what,
        "grad_slot overwrites every row's slots and ids choose some rows; use slot_sum");
    if (g.forward.used == 0) return;
    check_pointer(g.grad_o, what, "grad_o"), check_pointer(g.grad_q, what, "grad_q");
    if (g.grad_slot != nullptr) check_pointer(g.grad_slot, what, "grad_slot");
    if (g.slot_sum != nullptr) check_pointer(g.slot_sum, what, "slot_sum");
}
template <class T>
void check_slot_gradients(const DepthSlotGradientArgs<T>& g, const char* what) {
    check_heads(g.heads, g.kv_heads, g.head_dim, g.scale, what);
    ask(g.readers >= 0 && g.readers <= g.most_readers, what,
        "more layers read a slot than most_readers; raise it or bound the slots");
    ask(g.batch >= 1 && g.tokens.capacity >= 1, what, "no tokens; give at least one sequence of one token");
    ask(0 <= g.begin && g.begin <= g.end && g.end <= g.slots, what,
        "begin and end must lie between 0 and slots, in order; slots begin .. end - 1 are written");
    check_row(g.q_row, g.heads, g.head_dim, what, "q_row");
    check_pointer(g.grad_slot, what, "grad_slot");
    for (int r = 0; r < g.readers; ++r) {
        check_pointer(g.reads[r].q, what, "a reader's q"), check_pointer(g.reads[r].grad_o, what, "a reader's grad_o");
        ask(g.reads[r].p != nullptr && g.reads[r].ds != nullptr, what, "a reader's p or ds is null; pass both");
    }
}

}  // namespace sdepth::inline v0::on_cuda::detail
