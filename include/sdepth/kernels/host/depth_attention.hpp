// SPDX-License-Identifier: MIT
// MoDA's depth branch on the host, forward and backward: oracle (fp64) and what runs without a GPU (fp32). Rank 5.
#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "sdepth/error.hpp"
#include "sdepth/kernels/host/attention.hpp"
#include "sdepth/ops/depth_attention.hpp"

namespace sdepth::inline v0::on_host {

namespace detail {

// Where things of one token lie.
template <class T>
struct depth_token {
    std::ptrdiff_t q, o, slot, mask, lse;

    template <class Args>
    depth_token(const Args& a, int b, int t) {
        const std::ptrdiff_t token = std::ptrdiff_t{b} * a.tokens.capacity + t;
        q = token * a.q_stride(), o = token * a.heads * a.head_dim;
        slot = token * a.slots * a.kv_heads * 2 * a.head_dim, mask = token * a.slots, lse = token * a.heads;
    }
    // Keys of slot s for KV head `kv`; values follow after head_dim.
    template <class Args>
    std::ptrdiff_t key(const Args& a, int s, int kv) const {
        return slot + (std::ptrdiff_t{s} * a.kv_heads + kv) * 2 * a.head_dim;
    }
};

template <class T>
void check(const DepthAttentionArgs<T>& a) {
    if (a.kv_heads < 1 || a.heads % a.kv_heads != 0)
        throw error("depth attention: heads must be a multiple of kv_heads; give each KV head as many query heads");
    if (a.used < 0 || a.used > a.slots)
        throw error("depth attention: used must lie between 0 and slots; raise slots to what the layers write");
}

}  // namespace detail

/// Merges the slots into o and lse; see DepthAttentionArgs.
template <class T>
void depth_attention_forward(const DepthAttentionArgs<T>& a) {
    detail::check(a);
    const int h = a.head_dim, group = a.heads / a.kv_heads;
    std::vector<T> logit(static_cast<std::size_t>(a.used));
    for (int b = 0; b < a.batch; ++b)
        for (int t = 0; t < a.tokens.of(b); ++t) {
            const detail::depth_token<T> at(a, b, t);
            for (int head = 0; head < a.heads; ++head) {
                T* o = a.o + at.o + head * h;
                attention_sum_t<T>& lse = a.lse[at.lse + head];
                T top = static_cast<T>(lse);
                for (int s = 0; s < a.used; ++s) {
                    T& x = logit[static_cast<std::size_t>(s)];
                    x = -std::numeric_limits<T>::infinity();
                    if (a.mask != nullptr && a.mask[at.mask + s] == 0) continue;
                    x = static_cast<T>(a.scale) *
                        detail::dot(a.q + at.q + head * h, a.slot + at.key(a, s, head / group), h);
                    top = x > top ? x : top;
                }
                if (top == -std::numeric_limits<T>::infinity()) continue;
                T sum = std::exp(static_cast<T>(lse) - top);
                for (int c = 0; c < h; ++c) o[c] *= sum;
                for (int s = 0; s < a.used; ++s) {
                    const T x = logit[static_cast<std::size_t>(s)];
                    if (x == -std::numeric_limits<T>::infinity()) continue;
                    const T w = std::exp(x - top);
                    const T* v = a.slot + at.key(a, s, head / group) + h;
                    sum += w;
                    for (int c = 0; c < h; ++c) o[c] += w * v[c];
                }
                for (int c = 0; c < h; ++c) o[c] /= sum;
                lse = top + std::log(sum);
            }
        }
}

/// The depth branch's gradients; see DepthAttentionBackwardArgs.
template <class T>
void depth_attention_backward(const DepthAttentionBackwardArgs<T>& g) {
    const DepthAttentionArgs<T>& a = g.forward;
    detail::check(a);
    if ((g.p == nullptr) != (g.ds == nullptr))
        throw error("depth attention: p and ds must both be given or both be null; pass the two arrays together");
    const int h = a.head_dim, group = a.heads / a.kv_heads;
    for (int b = 0; b < a.batch; ++b)
        for (int t = 0; t < a.tokens.capacity; ++t) {
            const detail::depth_token<T> at(a, b, t);
            if (g.grad_slot != nullptr)
                for (int c = 0; c < a.used * a.kv_heads * 2 * h; ++c) g.grad_slot[at.slot + c] = T{0};
            if (t >= a.tokens.of(b)) continue;
            for (int head = 0; head < a.heads; ++head) {
                const T* q = a.q + at.q + head * h;
                const T* dy = g.grad_o + at.o + head * h;
                T* dq = g.grad_q + at.q + head * h;
                const T lse = static_cast<T>(a.lse[at.lse + head]), drop = detail::dot(a.o + at.o + head * h, dy, h);
                for (int s = 0; s < a.used; ++s) {
                    T p = 0, ds = 0;
                    const std::ptrdiff_t key = at.key(a, s, head / group);
                    if (a.mask == nullptr || a.mask[at.mask + s] != 0) {
                        const T* k = a.slot + key;
                        p = std::exp(static_cast<T>(a.scale) * detail::dot(q, k, h) - lse);
                        ds = p * (detail::dot(dy, k + h, h) - drop);
                        for (int c = 0; c < h; ++c) dq[c] += static_cast<T>(a.scale) * ds * k[c];
                    }
                    if (g.p != nullptr) {
                        g.p[(at.mask + s) * a.heads + head] = p;
                        g.ds[(at.mask + s) * a.heads + head] = ds;
                    }
                    if (g.grad_slot != nullptr)
                        for (int c = 0; c < h; ++c) {
                            g.grad_slot[key + c] += static_cast<T>(a.scale) * ds * q[c];
                            g.grad_slot[key + h + c] += p * dy[c];
                        }
                }
            }
        }
}

/// Slots' gradients from all their readers; see DepthSlotGradientArgs.
template <class T>
void depth_slot_gradients(const DepthSlotGradientArgs<T>& g) {
    if (g.readers < 0 || g.readers > g.most_readers)
        throw error("depth attention: more layers read a slot than most_readers; raise it or bound the slots");
    const int h = g.head_dim, group = g.heads / g.kv_heads;
    for (int b = 0; b < g.batch; ++b)
        for (int t = 0; t < g.tokens.capacity; ++t) {
            const detail::depth_token<T> at(g, b, t);
            for (int s = g.begin; s < g.end; ++s) {
                T* grad = g.grad_slot + at.key(g, s, 0);
                for (int c = 0; c < g.kv_heads * 2 * h; ++c) grad[c] = T{0};
                if (t >= g.tokens.of(b)) continue;
                for (int r = 0; r < g.readers; ++r)
                    for (int head = 0; head < g.heads; ++head) {
                        const T p = g.reads[r].p[(at.mask + s) * g.heads + head];
                        const T ds = g.reads[r].ds[(at.mask + s) * g.heads + head] * static_cast<T>(g.scale);
                        const T* q = g.reads[r].q + at.q + head * h;
                        const T* dy = g.reads[r].grad_o + at.o + head * h;
                        T* k = grad + head / group * 2 * h;
                        for (int c = 0; c < h; ++c) k[c] += ds * q[c], k[h + c] += p * dy[c];
                    }
            }
        }
}

}  // namespace sdepth::inline v0::on_host
