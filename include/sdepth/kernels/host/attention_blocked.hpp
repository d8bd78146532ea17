// SPDX-License-Identifier: MIT
// Attention on the host as matrix products, a block of query rows at a time and on all threads: what host<float> runs.
// attention.hpp is the plain form and its oracle. Rank 5.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <memory>

#include "sdepth/kernels/host/attention.hpp"
#include "sdepth/kernels/host/gemm.hpp"
#include "sdepth/kernels/host/vector.hpp"

namespace sdepth::inline v0::on_host {

namespace detail {

constexpr int attention_block = 64;  // query rows of a block

// One block of query rows of one sequence: the keys that any of its rows sees, and what each row sees of them.
template <class T>
struct query_block {
    int first = 0, rows = 0;  // live query rows
    int key = 0, keys = 0;    // key rows that somebody sees
    int from[attention_block] = {}, to[attention_block] = {};

    query_block(const AttentionArgs<T>& a, const sequence<T>& s, int begin)
        : first(begin), rows(std::clamp(s.queries - begin, 0, attention_block)) {
        int lowest = s.keys, highest = -1;
        for (int r = 0; r < rows; ++r) {
            const key_range see = visible_keys(first + r, s.queries, s.keys, a.causal, a.window, s.first, s.last);
            from[r] = see.first, to[r] = see.last + 1;
            if (from[r] >= to[r]) continue;
            lowest = std::min(lowest, from[r]), highest = std::max(highest, see.last);
        }
        if (highest < lowest) return;
        key = lowest, keys = highest + 1 - lowest;
        for (int r = 0; r < rows; ++r) {
            from[r] = std::max(from[r] - key, 0), to[r] = std::max(to[r] - key, from[r]);
        }
    }

    // Zero where row r of `x` [rows, keys] sees nothing.
    void clear_unseen(T* x, int r) const {
        std::fill(x, x + from[r], T{0});
        std::fill(x + to[r], x + keys, T{0});
    }
};

// Logits of a block: scale q k' in x [rows, keys].
template <class T>
void block_logits(const AttentionArgs<T>& a, const query_block<T>& block, const T* q, const T* k, T* x) {
    multiply(product<T>{block.rows,
                        block.keys,
                        a.head_dim,
                        {q, a.q_stride()},
                        {k, a.kv_stride(), true},
                        x,
                        block.keys,
                        static_cast<T>(a.scale)});
}

template <class T>
std::unique_ptr<T[]> block_scratch(const AttentionArgs<T>& a) {
    const auto size = static_cast<std::size_t>(attention_block) * static_cast<std::size_t>(a.keys.capacity);
    return std::make_unique_for_overwrite<T[]>(size);
}

}  // namespace detail

/// Forward attention as attention_forward, with sums in another order; threads share sequences, heads and blocks.
template <class T>
void blocked_attention(workers& team, const AttentionArgs<T>& a) {
    detail::check(a);
    const int h = a.head_dim, group = a.heads / a.kv_heads, o_row = a.heads * h;
    const int blocks = (a.queries.capacity + detail::attention_block - 1) / detail::attention_block;
    team.run(a.batch * a.heads * blocks, [&](int task) {
        const int b = task / (a.heads * blocks), head = task / blocks % a.heads;
        const detail::sequence<T> s(a, b);
        const detail::query_block<T> block(a, s, task % blocks * detail::attention_block);
        const int end = std::min(a.queries.capacity, block.first + detail::attention_block);
        T* o = s.o + std::ptrdiff_t{block.first} * o_row + head * h;
        attention_sum_t<T>* lse = s.lse + std::ptrdiff_t{block.first} * a.heads + head;
        for (int r = block.keys > 0 ? block.rows : 0; r < end - block.first; ++r) {
            std::fill_n(o + std::ptrdiff_t{r} * o_row, h, T{0});
            lse[std::ptrdiff_t{r} * a.heads] = -std::numeric_limits<attention_sum_t<T>>::infinity();
        }
        if (block.keys == 0) return;

        const auto scratch = detail::block_scratch(a);
        T* p = scratch.get();
        const std::ptrdiff_t at_k = std::ptrdiff_t{block.key} * a.kv_stride() + head / group * h;
        detail::block_logits(a, block, s.q + std::ptrdiff_t{block.first} * a.q_stride() + head * h, s.k + at_k, p);
        T sums[detail::attention_block];
        for (int r = 0; r < block.rows; ++r) {
            T* row = p + std::ptrdiff_t{r} * block.keys;
            const int seen = block.to[r] - block.from[r];
            block.clear_unseen(row, r);
            sums[r] = T{1};
            lse[std::ptrdiff_t{r} * a.heads] = -std::numeric_limits<attention_sum_t<T>>::infinity();
            if (seen == 0) continue;
            const T top = detail::largest(row + block.from[r], seen);
            sums[r] = detail::exponentials(row + block.from[r], top, seen);
            lse[std::ptrdiff_t{r} * a.heads] = top + std::log(sums[r]);
        }
        multiply(product<T>{block.rows, h, block.keys, {p, block.keys}, {s.v + at_k, a.kv_stride()}, o, o_row});
        for (int r = 0; r < block.rows; ++r)
            for (int c = 0; c < h; ++c) o[std::ptrdiff_t{r} * o_row + c] /= sums[r];
    });
}

/// Backward attention as attention_backward, with sums in another order. A thread owns a KV head of a sequence, so that
/// its gradients add up over query heads and blocks in order.
template <class T>
void blocked_attention_backward(workers& team, const AttentionBackwardArgs<T>& g) {
    const AttentionArgs<T>& a = g.forward;
    detail::check(a);
    const int h = a.head_dim, group = a.heads / a.kv_heads, o_row = a.heads * h;
    team.run(a.batch * a.kv_heads, [&](int task) {
        const int b = task / a.kv_heads, kv_head = task % a.kv_heads;
        const detail::sequence<T> s(a, b);
        const std::ptrdiff_t at_head = s.at(b, a.keys.capacity, a.kv_stride()) + kv_head * h;
        for (std::ptrdiff_t j = 0; j < a.keys.capacity; ++j) {
            std::fill_n(g.grad_k + at_head + j * a.kv_stride(), h, T{0});
            std::fill_n(g.grad_v + at_head + j * a.kv_stride(), h, T{0});
        }
        const auto scratch_p = detail::block_scratch(a), scratch_ds = detail::block_scratch(a);
        T *p = scratch_p.get(), *ds = scratch_ds.get();
        for (int head = kv_head * group; head < (kv_head + 1) * group; ++head)
            for (int first = 0; first < a.queries.capacity; first += detail::attention_block) {
                const detail::query_block<T> block(a, s, first);
                const int end = std::min(a.queries.capacity, first + detail::attention_block);
                const std::ptrdiff_t at_o = (std::ptrdiff_t{first} * a.heads + head) * h;
                T* grad_q = g.grad_q + s.at(b, a.queries.capacity, a.q_stride()) +
                            std::ptrdiff_t{first} * a.q_stride() + head * h;
                for (int r = block.keys > 0 ? block.rows : 0; r < end - first; ++r)
                    std::fill_n(grad_q + std::ptrdiff_t{r} * a.q_stride(), h, T{0});
                if (block.keys == 0) continue;

                const std::ptrdiff_t at_k = std::ptrdiff_t{block.key} * a.kv_stride();
                const operand<T> q{s.q + std::ptrdiff_t{first} * a.q_stride() + head * h, a.q_stride()};
                const operand<T> k{s.k + at_k + kv_head * h, a.kv_stride()};
                const operand<T> grad_o{g.grad_o + s.at(b, a.queries.capacity, o_row) + at_o, o_row};
                detail::block_logits(a, block, q.data, k.data, p);
                multiply(product<T>{block.rows,
                                    block.keys,
                                    h,
                                    grad_o,
                                    {s.v + at_k + kv_head * h, a.kv_stride(), true},
                                    ds,
                                    block.keys});
                for (int r = 0; r < block.rows; ++r) {
                    T* p_row = p + std::ptrdiff_t{r} * block.keys;
                    T* ds_row = ds + std::ptrdiff_t{r} * block.keys;
                    block.clear_unseen(p_row, r);
                    block.clear_unseen(ds_row, r);
                    const std::ptrdiff_t row = std::ptrdiff_t{first + r} * a.heads + head;
                    const T lse = static_cast<T>(s.lse[row]);
                    const T drop = detail::dot(s.o + row * h, grad_o.data + std::ptrdiff_t{r} * o_row, h);
                    for (int j = block.from[r]; j < block.to[r]; ++j) p_row[j] = detail::exponential(p_row[j] - lse);
                    for (int j = block.from[r]; j < block.to[r]; ++j)
                        ds_row[j] = p_row[j] * (ds_row[j] - drop) * static_cast<T>(a.scale);
                }
                T* grad_k = g.grad_k + at_head + at_k;
                T* grad_v = g.grad_v + at_head + at_k;
                multiply(product<T>{block.rows, h, block.keys, {ds, block.keys}, k, grad_q, a.q_stride()});
                multiply(product<T>{
                    block.keys, h, block.rows, {ds, block.keys, true}, q, grad_k, a.kv_stride(), T{1}, T{1}});
                multiply(product<T>{
                    block.keys, h, block.rows, {p, block.keys, true}, grad_o, grad_v, a.kv_stride(), T{1}, T{1}});
            }
    });
}

}  // namespace sdepth::inline v0::on_host
