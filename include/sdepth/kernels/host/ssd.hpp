// SPDX-License-Identifier: MIT
// State-space duality, the core of Mamba-2: by chunks, row after row, and backward. One task a head. Rank 5.
#pragma once

#include "sdepth/kernels/host/parallel.hpp"
#include "sdepth/kernels/host/recurrence.hpp"
#include "sdepth/ops/recurrent.hpp"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0::on_host {

namespace detail {

// One head of one sequence: where its numbers stand, and itself as a decaying head (C, B, step x, step a).
template <class T>
struct ssd_head {
    const SsdArgs<uniform_precision<T>>& a;
    int b, h;
    decaying_head<T> head;
    std::vector<T> step;  // [rows]

    ssd_head(const SsdArgs<uniform_precision<T>>& args, int sequence, int number)
        : a(args),
          b(sequence),
          h(number),
          head(a.rows.each.of(b), a.states, a.head_dim, a.first == nullptr ? nullptr : a.first + a.rows.first(b)),
          step(head.decay.size()) {
        for (int i = 0; i < head.rows; ++i) {
            const T* x = a.xbc + x_at(i);
            step[head.at(i, 1)] = softplus(a.dt[place(i)] + a.dt_bias[h]);
            head.decay[head.at(i, 1)] = step[head.at(i, 1)] * transition();
            std::copy_n(a.xbc + b_at(i), a.states, &head.k[head.at(i, a.states)]);
            std::copy_n(a.xbc + c_at(i), a.states, &head.q[head.at(i, a.states)]);
            for (int c = 0; c < a.head_dim; ++c)
                head.v[head.at(i, a.head_dim) + head.at(c, 1)] = step[head.at(i, 1)] * x[c];
        }
    }
    T transition() const { return -std::exp(a.a_log[h]); }
    long long place(int i) const { return (a.rows.first(b) + i) * a.heads + h; }  // among [N, H]
    long long row_at(int i) const {
        return (a.rows.first(b) + i) * (static_cast<long long>(a.heads) * a.head_dim + 2LL * a.groups * a.states);
    }
    long long x_at(int i) const { return row_at(i) + static_cast<long long>(h) * a.head_dim; }
    long long b_at(int i) const {
        return row_at(i) + static_cast<long long>(a.heads) * a.head_dim + h / (a.heads / a.groups) * a.states;
    }
    long long c_at(int i) const { return b_at(i) + static_cast<long long>(a.groups) * a.states; }
};

// Calls f(head, its state) for every head of every sequence, then writes y.
template <class T, class F>
void for_ssd_heads(workers& team, const SsdArgs<uniform_precision<T>>& a, const F& f) {
    team.run(a.rows.batch * a.heads, [&](int task) {
        ssd_head<T> s(a, task / a.heads, task % a.heads);
        std::vector<T> none(a.state == nullptr ? s.head.state_size() : 0);
        f(s.head, a.state == nullptr ? none.data() : a.state + task * static_cast<long long>(s.head.state_size()));
        for (int i = 0; i < s.head.rows; ++i) {
            const T* x = a.xbc + s.x_at(i);
            const T* read = &s.head.y[s.head.at(i, a.head_dim)];
            T* y = a.y + s.place(i) * a.head_dim;
            for (int c = 0; c < a.head_dim; ++c) y[c] = read[c] + a.skip[s.h] * x[c];
        }
    });
}

}  // namespace detail

/// See SsdArgs: the parallel form.
template <class T>
void ssd(workers& team, const SsdArgs<uniform_precision<T>>& a) {
    detail::for_ssd_heads<T>(team, a,
                             [&](detail::decaying_head<T>& head, T* state) { head.in_chunks(state, a.chunk); });
}

/// See SsdArgs: the recurrence.
template <class T>
void ssd_step(workers& team, const SsdArgs<uniform_precision<T>>& a) {
    detail::for_ssd_heads<T>(team, a, [](detail::decaying_head<T>& head, T* state) { head.step(state); });
}

/// See SsdBackwardArgs. Heads of a group share B and C: each head keeps its share, and they add up in order of heads.
template <class T>
void ssd_backward(workers& team, const SsdBackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    for (int b = 0; b < a.rows.batch; ++b) {
        const int rows = a.rows.each.of(b);
        const std::size_t shared = detail::decaying_head<T>::at(rows, a.states);
        std::vector<T> grad_b(shared * static_cast<std::size_t>(a.heads)), grad_c(grad_b.size());
        team.run(a.heads, [&](int h) {
            const detail::ssd_head<T> s(a, b, h);
            const auto& head = s.head;
            std::vector<T> grad_y(head.v.size()), grad_v(head.v.size()), grad_decay(head.decay.size());
            for (int i = 0; i < rows; ++i)
                std::copy_n(g.grad_y + s.place(i) * a.head_dim, a.head_dim, &grad_y[head.at(i, a.head_dim)]);
            const std::size_t mine = shared * static_cast<std::size_t>(h);
            head.backward(grad_y.data(), grad_c.data() + mine, grad_b.data() + mine, grad_v.data(), grad_decay.data());
            for (int i = 0; i < rows; ++i) {
                const T* x = a.xbc + s.x_at(i);
                const T* gy = &grad_y[head.at(i, a.head_dim)];
                const T* gv = &grad_v[head.at(i, a.head_dim)];
                const T decay = grad_decay[head.at(i, 1)];
                for (int c = 0; c < a.head_dim; ++c)
                    g.grad_xbc[s.x_at(i) + c] = s.step[head.at(i, 1)] * gv[c] + a.skip[h] * gy[c];
                const T grad_step = detail::dot(gv, x, a.head_dim) + decay * s.transition();
                const T grad_dt = grad_step * detail::sigmoid(a.dt[s.place(i)] + a.dt_bias[h]);
                g.grad_dt[s.place(i)] = grad_dt;
                g.grad_dt_bias[h] += grad_dt;
                g.grad_a_log[h] += decay * head.decay[head.at(i, 1)];
                g.grad_skip[h] += detail::dot(gy, x, a.head_dim);
            }
        });
        team.run(a.groups, [&](int group) {
            const int heads = a.heads / a.groups;
            const detail::ssd_head<T> place_of{a, b, group * heads};
            for (int i = 0; i < rows; ++i) {
                for (int n = 0; n < a.states; ++n) {
                    T sum_b = 0, sum_c = 0;
                    for (int h = group * heads; h < (group + 1) * heads; ++h) {
                        const std::size_t at = shared * static_cast<std::size_t>(h) +
                                               detail::decaying_head<T>::at(i, a.states) + static_cast<std::size_t>(n);
                        sum_b += grad_b[at];
                        sum_c += grad_c[at];
                    }
                    g.grad_xbc[place_of.b_at(i) + n] = sum_b;
                    g.grad_xbc[place_of.c_at(i) + n] = sum_c;
                }
            }
        });
    }
}

}  // namespace sdepth::inline v0::on_host
