// SPDX-License-Identifier: MIT
// MoDA's depth branch on the host, forward and backward: oracle (fp64) and what runs without a GPU (fp32). Rank 5.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "sdepth/error.hpp"
#include "sdepth/kernels/host/attention.hpp"
#include "sdepth/kernels/host/parallel.hpp"
#include "sdepth/ops/depth_attention.hpp"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0::on_host {

namespace detail {

// Where things of one token lie.
template <class T>
struct depth_token {
    std::ptrdiff_t q, o, slot, mask, lse, p;

    template <class Args>
    depth_token(const Args& a, long long token) {
        q = token * a.q_stride(), o = token * a.heads * a.head_dim, lse = token * a.heads, p = token * a.slots;
        long long row = token;
        if constexpr (requires { a.ids; }) {
            if (a.ids != nullptr) row = token / a.tokens.capacity * a.sequence + a.ids[token];
        }
        slot = row * a.slots * a.kv_heads * 2 * a.head_dim, mask = row * a.slots;
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
void depth_attention_forward(workers& team, const DepthAttentionArgs<T>& a) {
    detail::check(a);
    const int h = a.head_dim, group = a.heads / a.kv_heads;
    for_rows(team, {a.batch, a.tokens}, [&](long long token) {
        const detail::depth_token<T> at(a, token);
        std::vector<T> logit(static_cast<std::size_t>(a.used));
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
    });
}

/// The depth branch's gradients; see DepthAttentionBackwardArgs.
template <class T>
void depth_attention_backward(workers& team, const DepthAttentionBackwardArgs<T>& g) {
    const DepthAttentionArgs<T>& a = g.forward;
    detail::check(a);
    if ((g.p == nullptr) != (g.ds == nullptr))
        throw error("depth attention: p and ds must both be given or both be null; pass the two arrays together");
    if (a.ids != nullptr && g.grad_slot != nullptr)
        throw error("depth attention: grad_slot overwrites every row's slots and ids choose some rows; use slot_sum");
    const int h = a.head_dim, group = a.heads / a.kv_heads;
    for_rows(team, {a.batch, {a.tokens.capacity, nullptr}}, [&](long long token) {
        const auto b = static_cast<int>(token / a.tokens.capacity);
        const bool live = token % a.tokens.capacity < a.tokens.of(b);
        if (!live && g.grad_slot == nullptr) return;
        const detail::depth_token<T> at(a, token);
        if (g.grad_slot != nullptr)
            for (int c = 0; c < a.used * a.kv_heads * 2 * h; ++c) g.grad_slot[at.slot + c] = T{0};
        if (!live) return;
        for (int head = 0; head < a.heads; ++head) {
            const T* q = a.q + at.q + head * h;
            const T* dy = g.grad_o + at.o + head * h;
            T* dq = g.grad_q + at.q + head * h;
            const T lse = static_cast<T>(a.lse[at.lse + head]), drop = detail::dot(a.o + at.o + head * h, dy, h);
            for (int s = 0; s < a.used; ++s) {
                T p = 0, ds = 0;
                const std::ptrdiff_t key = at.key(a, s, head / group);
                const bool seen = a.mask == nullptr || a.mask[at.mask + s] != 0;
                if (seen) {
                    const T* k = a.slot + key;
                    p = std::exp(static_cast<T>(a.scale) * detail::dot(q, k, h) - lse);
                    ds = p * (detail::dot(dy, k + h, h) - drop);
                    for (int c = 0; c < h; ++c) dq[c] += static_cast<T>(a.scale) * ds * k[c];
                }
                if (g.p != nullptr) {
                    g.p[(at.p + s) * a.heads + head] = p;
                    g.ds[(at.p + s) * a.heads + head] = ds;
                }
                const auto add_to = [&](auto* grad) {
                    for (int c = 0; c < h; ++c) {
                        grad[key + c] += static_cast<T>(a.scale) * ds * q[c];
                        grad[key + h + c] += p * dy[c];
                    }
                };
                if (seen && g.grad_slot != nullptr) add_to(g.grad_slot);
                if (seen && g.slot_sum != nullptr) add_to(g.slot_sum);
            }
        }
    });
}

/// Slots' gradients from all their readers; see DepthSlotGradientArgs.
template <class T>
void depth_slot_gradients(workers& team, const DepthSlotGradientArgs<T>& g) {
    if (g.readers < 0 || g.readers > g.most_readers)
        throw error("depth attention: more layers read a slot than most_readers; raise it or bound the slots");
    const int h = g.head_dim, group = g.heads / g.kv_heads;
    for_rows(team, {g.batch, {g.tokens.capacity, nullptr}}, [&](long long token) {
        const auto b = static_cast<int>(token / g.tokens.capacity);
        const bool live = token % g.tokens.capacity < g.tokens.of(b);
        const detail::depth_token<T> at(g, token);
        for (int s = g.begin; s < g.end; ++s) {
            T* grad = g.grad_slot + at.key(g, s, 0);
            for (int c = 0; c < g.kv_heads * 2 * h; ++c) grad[c] = T{0};
            for (int r = 0; live && r < g.readers; ++r)
                for (int head = 0; head < g.heads; ++head) {
                    const T p = g.reads[r].p[(at.p + s) * g.heads + head];
                    const T ds = g.reads[r].ds[(at.p + s) * g.heads + head] * static_cast<T>(g.scale);
                    const T* q = g.reads[r].q + at.q + head * h;
                    const T* dy = g.reads[r].grad_o + at.o + head * h;
                    T* k = grad + head / group * 2 * h;
                    for (int c = 0; c < h; ++c) k[c] += ds * q[c], k[h + c] += p * dy[c];
                }
        }
    });
}

namespace detail {

// Calls f(place in k and v, place of the keys in the slots' memory) for each row and KV head; values follow the keys.
template <class P, class F>
void for_slot_rows(workers& team, const WriteSlotArgs<P>& a, const F& f) {
    for_rows(team, a.rows, [&](long long row) {
        const long long position = row / a.rows.each.capacity * a.sequence + a.ids[row];
        const long long from = (a.every_row ? position : row) * a.kv_heads;
        const long long to = (position * a.slots + a.slot) * a.kv_heads;
        for (int kv = 0; kv < a.kv_heads; ++kv) f((from + kv) * a.head_dim, (to + kv) * 2 * a.head_dim);
    });
}

}  // namespace detail

/// See WriteSlotArgs.
template <class T>
void write_slot(workers& team, const WriteSlotArgs<uniform_precision<T>>& a) {
    detail::for_slot_rows(team, a, [&](long long from, long long to) {
        std::copy_n(a.k + from, a.head_dim, a.memory + to);
        std::copy_n(a.v + from, a.head_dim, a.memory + to + a.head_dim);
    });
    for_rows(team, a.rows, [&](long long row) {
        const long long position = row / a.rows.each.capacity * a.sequence + a.ids[row];
        a.mask[position * a.slots + a.slot] = a.seen ? 1 : 0;
    });
}

/// See SlotGradientArgs.
template <class T>
void slot_gradient(workers& team, const SlotGradientArgs<uniform_precision<T>>& g) {
    const int h = g.forward.head_dim;
    detail::for_slot_rows(team, g.forward, [&](long long to, long long from) {
        for (int c = 0; c < h; ++c) {
            g.grad_k[to + c] = (g.adds ? g.grad_k[to + c] : T{0}) + g.slot_sum[from + c];
            g.grad_v[to + c] = (g.adds ? g.grad_v[to + c] : T{0}) + g.slot_sum[from + h + c];
        }
    });
}

/// See DepthMassArgs.
template <class T>
void depth_mass(workers& team, const DepthMassArgs<uniform_precision<T>>& m) {
    const AttentionArgs<T>& a = m.attention;
    for_rows_with_sums(team, {a.batch, a.queries}, a.heads + 2, m.mass, [&](long long row, double* sum) {
        const auto b = static_cast<int>(row / a.queries.capacity);
        const auto i = static_cast<int>(row % a.queries.capacity);
        const long long first = static_cast<long long>(b) * a.queries.capacity;
        const key_range keys =
            visible_keys(i, a.queries.of(b), a.keys.of(b), a.causal, a.window,
                         a.first == nullptr ? nullptr : a.first + first, a.last == nullptr ? nullptr : a.last + first);
        const std::uint8_t* written = m.mask + (static_cast<long long>(b) * m.sequence + m.ids[row]) * m.slots;
        int slots = 0;
        for (int part = 0; part < 2; ++part)
            for (int s = m.seen.begin[part]; s < m.seen.end[part]; ++s) slots += written[s] != 0 ? 1 : 0;
        const int all = slots + keys.last - keys.first + 1;
        sum[a.heads + 1] += 1;
        if (slots == 0) return;
        sum[a.heads] += static_cast<double>(slots) / all;
        for (int head = 0; head < a.heads; ++head) {
            const long long at = row * a.heads + head;
            sum[head] -= std::expm1(static_cast<double>(m.sequence_lse[at]) - static_cast<double>(a.lse[at]));
        }
    });
}

}  // namespace sdepth::inline v0::on_host
