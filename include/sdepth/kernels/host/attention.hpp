// SPDX-License-Identifier: MIT
// Attention on the host, forward and backward: the oracle of every attention kernel (in fp64) and what runs without a
// GPU (in fp32). Plain loops, one row at a time. Rank 5.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "sdepth/error.hpp"
#include "sdepth/kernels/host/vector.hpp"
#include "sdepth/ops/attention.hpp"

namespace sdepth::inline v0::on_host {

namespace detail {

template <class T>
void check(const AttentionArgs<T>& a) {
    if (a.kv_heads < 1 || a.heads % a.kv_heads != 0)
        throw error(
            "attention: heads must be a multiple of kv_heads; give each KV head the same number of query heads");
    if ((a.first == nullptr) != (a.last == nullptr))
        throw error("attention: first and last must both be given or both be null; pass the two arrays together");
    if (a.window != 0 && (a.first != nullptr || !a.causal))
        throw error("attention: window needs plain causal visibility; express other windows by first and last");
}

// Where things of sequence b lie; rows and heads are added by the caller.
template <class T>
struct sequence {
    const T *q, *k, *v;
    T* o;
    attention_sum_t<T>* lse;
    const int *first, *last;
    int queries, keys;

    sequence(const AttentionArgs<T>& a, int b)
        : q(a.q + at(b, a.queries.capacity, a.q_stride())),
          k(a.k + at(b, a.keys.capacity, a.kv_stride())),
          v(a.v + at(b, a.keys.capacity, a.kv_stride())),
          o(a.o + at(b, a.queries.capacity, a.heads * a.head_dim)),
          lse(a.lse + at(b, a.queries.capacity, a.heads)),
          first(a.first == nullptr ? nullptr : a.first + at(b, a.queries.capacity, 1)),
          last(a.last == nullptr ? nullptr : a.last + at(b, a.queries.capacity, 1)),
          queries(a.queries.of(b)),
          keys(a.keys.of(b)) {}

    static std::ptrdiff_t at(int row, int n, int stride) { return std::ptrdiff_t{row} * n * stride; }
};

}  // namespace detail

/// Forward attention; see AttentionArgs for shapes and visibility. Throws sdepth::error on sizes that do not fit.
template <class T>
void attention_forward(const AttentionArgs<T>& a) {
    detail::check(a);
    const int h = a.head_dim, group = a.heads / a.kv_heads;
    std::vector<T> p(static_cast<std::size_t>(a.keys.capacity));
    for (int b = 0; b < a.batch; ++b) {
        const detail::sequence<T> s(a, b);
        for (int i = 0; i < a.queries.capacity; ++i) {
            const key_range see = visible_keys(i, s.queries, s.keys, a.causal, a.window, s.first, s.last);
            for (int head = 0; head < a.heads; ++head) {
                const T* q = s.q + std::ptrdiff_t{i} * a.q_stride() + head * h;
                const T* k = s.k + head / group * h;
                const T* v = s.v + head / group * h;
                T* o = s.o + (std::ptrdiff_t{i} * a.heads + head) * h;
                attention_sum_t<T>& lse = s.lse[std::ptrdiff_t{i} * a.heads + head];
                for (int c = 0; c < h; ++c) o[c] = T{0};
                lse = -std::numeric_limits<attention_sum_t<T>>::infinity();
                if (see.last < see.first) continue;

                // Logits and their maximum, then the sum of exponentials, then o.
                T top = -std::numeric_limits<T>::infinity();
                for (int j = see.first; j <= see.last; ++j) {
                    T& x = p[static_cast<std::size_t>(j)];
                    x = static_cast<T>(a.scale) * detail::dot(q, k + std::ptrdiff_t{j} * a.kv_stride(), h);
                    top = x > top ? x : top;
                }
                T sum = 0;
                for (int j = see.first; j <= see.last; ++j) {
                    T& x = p[static_cast<std::size_t>(j)];
                    x = std::exp(x - top);
                    sum += x;
                }
                for (int j = see.first; j <= see.last; ++j) {
                    const T w = p[static_cast<std::size_t>(j)] / sum;
                    const T* row = v + std::ptrdiff_t{j} * a.kv_stride();
                    for (int c = 0; c < h; ++c) o[c] += w * row[c];
                }
                lse = top + std::log(sum);
            }
        }
    }
}

/// Backward attention from o and lse, which may be joint (see AttentionBackwardArgs); overwrites all gradients.
/// With P = exp(S - lse), D = o . grad_o:  grad_v += P grad_o,  dS = P (grad_o v^T - D) scale,  grad_q += dS k,
/// grad_k += dS q.
template <class T>
void attention_backward(const AttentionBackwardArgs<T>& g) {
    const AttentionArgs<T>& a = g.forward;
    detail::check(a);
    const int h = a.head_dim, group = a.heads / a.kv_heads;
    for (int b = 0; b < a.batch; ++b) {
        const detail::sequence<T> s(a, b);
        const T* grad_o = g.grad_o + s.at(b, a.queries.capacity, a.heads * h);
        T* grad_q = g.grad_q + s.at(b, a.queries.capacity, a.q_stride());
        T* grad_k = g.grad_k + s.at(b, a.keys.capacity, a.kv_stride());
        T* grad_v = g.grad_v + s.at(b, a.keys.capacity, a.kv_stride());
        for (int j = 0; j < a.keys.capacity; ++j)
            for (int c = 0; c < a.kv_heads * h; ++c)
                grad_k[std::ptrdiff_t{j} * a.kv_stride() + c] = grad_v[std::ptrdiff_t{j} * a.kv_stride() + c] = T{0};

        for (int i = 0; i < a.queries.capacity; ++i) {
            const key_range see = visible_keys(i, s.queries, s.keys, a.causal, a.window, s.first, s.last);
            for (int head = 0; head < a.heads; ++head) {
                const std::ptrdiff_t at_q = std::ptrdiff_t{i} * a.q_stride() + head * h;
                const std::ptrdiff_t at_o = (std::ptrdiff_t{i} * a.heads + head) * h;
                const T* q = s.q + at_q;
                const T* dy = grad_o + at_o;
                T* dq = grad_q + at_q;
                for (int c = 0; c < h; ++c) dq[c] = T{0};
                if (see.last < see.first) continue;
                const T lse = static_cast<T>(s.lse[std::ptrdiff_t{i} * a.heads + head]);
                const T drop = detail::dot(s.o + at_o, dy, h);
                for (int j = see.first; j <= see.last; ++j) {
                    const std::ptrdiff_t at_k = std::ptrdiff_t{j} * a.kv_stride() + head / group * h;
                    const T* k = s.k + at_k;
                    const T p = std::exp(static_cast<T>(a.scale) * detail::dot(q, k, h) - lse);
                    const T ds = p * (detail::dot(dy, s.v + at_k, h) - drop) * static_cast<T>(a.scale);
                    T* dk = grad_k + at_k;
                    T* dv = grad_v + at_k;
                    for (int c = 0; c < h; ++c) {
                        dv[c] += p * dy[c];
                        dq[c] += ds * k[c];
                        dk[c] += ds * q[c];
                    }
                }
            }
        }
    }
}

}  // namespace sdepth::inline v0::on_host
