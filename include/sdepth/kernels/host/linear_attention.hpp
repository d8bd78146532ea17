// SPDX-License-Identifier: MIT
// Linear attention with a forget gate, by chunks, row after row, and backward. One task a head of a sequence. Rank 5.
#pragma once

#include "sdepth/kernels/host/parallel.hpp"
#include "sdepth/kernels/host/recurrence.hpp"
#include "sdepth/ops/recurrent.hpp"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0::on_host {

namespace detail {

// A feature and its slope at x.
template <class T>
T feature_of(feature_map map, T x) {
    if (map == feature_map::relu) return std::max(x, T{0});
    return map == feature_map::elu_plus_one && x > T{0} ? x + T{1} : std::exp(x);
}
template <class T>
T feature_slope(feature_map map, T x) {
    if (map == feature_map::relu) return x > T{0} ? T{1} : T{0};
    return map == feature_map::elu_plus_one && x > T{0} ? T{1} : std::exp(x);
}

// Head h of sequence b; its values have a last column of ones, whose sum is the denominator.
template <class T>
decaying_head<T> head_of(const LinearAttentionArgs<uniform_precision<T>>& a, int b, int h) {
    const long long from = a.rows.first(b);
    decaying_head<T> head(a.rows.each.of(b), a.key_dim, a.value_dim + 1, a.first == nullptr ? nullptr : a.first + from);
    for (int i = 0; i < head.rows; ++i) {
        const long long at = (from + i) * a.heads + h;
        for (int c = 0; c < a.key_dim; ++c) {
            head.q[head.at(i, head.keys) + head.at(c, 1)] = feature_of(a.map, a.q[at * a.key_dim + c]);
            head.k[head.at(i, head.keys) + head.at(c, 1)] = feature_of(a.map, a.k[at * a.key_dim + c]);
        }
        std::copy_n(a.v + at * a.value_dim, a.value_dim, &head.v[head.at(i, head.values)]);
        head.v[head.at(i + 1, head.values) - 1] = T{1};
        head.decay[head.at(i, 1)] = a.gate == nullptr ? T{0} : -softplus(-a.gate[at]);
    }
    return head;
}

// y of head h from numerators and denominators.
template <class T>
void divide(const LinearAttentionArgs<uniform_precision<T>>& a, const decaying_head<T>& head, int b, int h, T* y) {
    for (int i = 0; i < head.rows; ++i) {
        const T* sums = &head.y[head.at(i, head.values)];
        const T over = T{1} / (sums[a.value_dim] + static_cast<T>(a.epsilon));
        T* out = y + ((a.rows.first(b) + i) * a.heads + h) * a.value_dim;
        for (int c = 0; c < a.value_dim; ++c) out[c] = sums[c] * over;
    }
}

// Calls f(head, its state, b, h) for every head of every sequence.
template <class T, class F>
void for_heads(workers& team, const LinearAttentionArgs<uniform_precision<T>>& a, const F& f) {
    team.run(a.rows.batch * a.heads, [&](int task) {
        decaying_head<T> head = head_of<T>(a, task / a.heads, task % a.heads);
        std::vector<T> none(a.state == nullptr ? head.state_size() : 0);
        T* state = a.state == nullptr ? none.data() : a.state + task * static_cast<long long>(head.state_size());
        f(head, state, task / a.heads, task % a.heads);
    });
}

}  // namespace detail

/// See LinearAttentionArgs: the parallel form.
template <class T>
void linear_attention(workers& team, const LinearAttentionArgs<uniform_precision<T>>& a) {
    detail::for_heads<T>(team, a, [&](detail::decaying_head<T>& head, T* state, int b, int h) {
        head.in_chunks(state, a.chunk);
        detail::divide(a, head, b, h, a.y);
    });
}

/// See LinearAttentionArgs: the recurrence.
template <class T>
void linear_attention_step(workers& team, const LinearAttentionArgs<uniform_precision<T>>& a) {
    detail::for_heads<T>(team, a, [&](detail::decaying_head<T>& head, T* state, int b, int h) {
        head.step(state);
        detail::divide(a, head, b, h, a.y);
    });
}

/// See LinearAttentionBackwardArgs.
template <class T>
void linear_attention_backward(workers& team, const LinearAttentionBackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    detail::for_heads<T>(team, a, [&](detail::decaying_head<T>& head, T* state, int b, int h) {
        head.in_chunks(state, a.chunk);
        const auto place = [&](int i) { return (a.rows.first(b) + i) * a.heads + h; };
        std::vector<T> grad_sums(head.v.size()), grad_q(head.q.size()), grad_k(head.k.size()), grad_v(head.v.size()),
            grad_decay(head.decay.size());
        for (int i = 0; i < head.rows; ++i) {
            const T* sums = &head.y[head.at(i, head.values)];
            const T over = T{1} / (sums[a.value_dim] + static_cast<T>(a.epsilon));
            const T* grad_y = g.grad_y + place(i) * a.value_dim;
            T* grad = &grad_sums[head.at(i, head.values)];
            for (int c = 0; c < a.value_dim; ++c) grad[c] = grad_y[c] * over;
            grad[a.value_dim] = -detail::dot(grad, sums, a.value_dim) * over;
        }
        head.backward(grad_sums.data(), grad_q.data(), grad_k.data(), grad_v.data(), grad_decay.data());
        for (int i = 0; i < head.rows; ++i) {
            for (int c = 0; c < a.key_dim; ++c) {
                const long long at = place(i) * a.key_dim + c;
                const std::size_t from = head.at(i, head.keys) + head.at(c, 1);
                g.grad_q[at] = grad_q[from] * detail::feature_slope(a.map, a.q[at]);
                g.grad_k[at] = grad_k[from] * detail::feature_slope(a.map, a.k[at]);
            }
            std::copy_n(&grad_v[head.at(i, head.values)], a.value_dim, g.grad_v + place(i) * a.value_dim);
            if (a.gate != nullptr)
                g.grad_gate[place(i)] = grad_decay[head.at(i, 1)] * detail::sigmoid(-a.gate[place(i)]);
        }
    });
}

}  // namespace sdepth::inline v0::on_host
