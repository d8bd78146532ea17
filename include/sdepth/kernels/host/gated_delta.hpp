// SPDX-License-Identifier: MIT
// The gated delta rule: by chunks, row after row, and backward. One task a key head with its value heads. Rank 5.
#pragma once

#include "sdepth/kernels/host/parallel.hpp"
#include "sdepth/kernels/host/recurrence.hpp"
#include "sdepth/ops/recurrent.hpp"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0::on_host {

namespace detail {

/// One value head of S_i = e^(decay_i) S_{i-1} (I - b k k') + b v k' over the rows of one sequence; S is kept
/// transposed, [keys, values], so that a row does S = e^decay S, u = b (v - S' k), S = S + k u', y = S' q.
template <class T>
struct delta_head {
    int rows, keys, values;
    const int* first;
    std::vector<T> q, k, v, decay, strength;  // unit q and k
    std::vector<T> over_q, over_k;            // 1 / lengths
    std::vector<T> y;

    static std::size_t at(int row, int width) {
        return static_cast<std::size_t>(row) * static_cast<std::size_t>(width);
    }
    std::size_t state_size() const { return at(keys, values); }

    delta_head(const GatedDeltaArgs<uniform_precision<T>>& a, int b, int h)
        : rows(a.rows.each.of(b)),
          keys(a.key_dim),
          values(a.value_dim),
          first(a.first == nullptr ? nullptr : a.first + a.rows.first(b)),
          q(at(rows, keys)),
          k(q.size()),
          v(at(rows, values)),
          decay(at(rows, 1)),
          strength(decay.size()),
          over_q(decay.size()),
          over_k(decay.size()),
          y(v.size()) {
        const int key_head = h / (a.value_heads / a.heads);
        for (int i = 0; i < rows; ++i) {
            const long long row = a.rows.first(b) + i, key = (row * a.heads + key_head) * keys;
            const long long value = row * a.value_heads + h;
            over_q[at(i, 1)] = unit(a.q + key, &q[at(i, keys)], a.epsilon);
            over_k[at(i, 1)] = unit(a.k + key, &k[at(i, keys)], a.epsilon);
            std::copy_n(a.v + value * values, values, &v[at(i, values)]);
            decay[at(i, 1)] = -std::exp(a.a_log[h]) * softplus(a.decay[value] + a.dt_bias[h]);
            strength[at(i, 1)] = sigmoid(a.strength[value]);
        }
    }

    void step(T* state) {
        std::vector<T> u(at(values, 1));
        for (int i = 0; i < rows; ++i) {
            advance(i, state, state, u.data());
            read(state, T{1}, &q[at(i, keys)], &y[at(i, values)]);
        }
    }

    /// The same by chunks: the u of a chunk solve a unit lower triangular system, row after row (WY form); only the
    /// state of the chunk's start enters.
    void in_chunks(T* state, int chunk) {
        const int most = std::min(chunk, rows);
        std::vector<T> weights(at(most, 1)), u(at(most, values));
        for (int begin = 0; begin < rows; begin += chunk) {
            const int last = std::min(rows, begin + chunk) - 1;
            for (int i = begin; i <= last; ++i) {
                const T carried = chunk_decays(first, decay.data(), begin, i, weights.data());
                const int start = start_in_chunk(first, i, begin);
                T* mine = &u[at(i - begin, values)];
                std::fill_n(mine, values, T{0});
                if (carried > T{0}) {
                    read(state, carried, &k[at(i, keys)], mine);
                    read(state, carried, &q[at(i, keys)], &y[at(i, values)]);
                }
                for (int j = start; j < i; ++j)
                    add(weights[at(j - begin, 1)] * dot(&k[at(j, keys)], &k[at(i, keys)], keys),
                        &u[at(j - begin, values)], mine);
                for (int c = 0; c < values; ++c) mine[c] = strength[at(i, 1)] * (v[at(i, values) + at(c, 1)] - mine[c]);
                for (int j = start; j <= i; ++j)
                    add(weights[at(j - begin, 1)] * dot(&k[at(j, keys)], &q[at(i, keys)], keys),
                        &u[at(j - begin, values)], &y[at(i, values)]);
            }
            const T carried = chunk_decays(first, decay.data(), begin, last, weights.data());
            for (std::size_t e = 0; e < state_size(); ++e) state[e] = carried > T{0} ? carried * state[e] : T{0};
            for (int j = start_in_chunk(first, last, begin); j <= last; ++j)
                for (int c = 0; c < keys; ++c)
                    add(weights[at(j - begin, 1)] * k[at(j, keys) + at(c, 1)], &u[at(j - begin, values)],
                        state + at(c, values));
        }
    }

    /// Gradients of unit q and k (added to), v, decay and strength (overwritten) from that of y.
    void backward(const T* grad_y, T* grad_q, T* grad_k, T* grad_v, T* grad_decay, T* grad_strength) const {
        std::vector<T> u(at(values, 1)), error(u.size()), grad_u(u.size());
        const auto back = [&](int i, const T* before, const T* after, T* grad) {
            const T keep = starts_document(first, i) ? T{0} : std::exp(decay[at(i, 1)]);
            const T b = strength[at(i, 1)];
            const T* gy = grad_y + at(i, values);
            std::fill(error.begin(), error.end(), T{0});
            std::fill(grad_u.begin(), grad_u.end(), T{0});
            if (keep > T{0}) read(before, keep, &k[at(i, keys)], error.data());
            for (std::size_t c = 0; c < u.size(); ++c) {
                error[c] = v[at(i, values) + c] - error[c];
                u[c] = b * error[c];
            }
            for (int c = 0; c < keys; ++c) {
                T* row = grad + at(c, values);
                const std::size_t e = at(i, keys) + at(c, 1);
                grad_q[e] += dot(after + at(c, values), gy, values);
                add(q[e], gy, row);
                grad_k[e] += dot(row, u.data(), values);
                add(k[e], row, grad_u.data());
            }
            T along = 0;
            for (std::size_t c = 0; c < u.size(); ++c) {
                along += grad_u[c] * error[c];
                grad_u[c] *= b;
                grad_v[at(i, values) + c] = grad_u[c];
            }
            grad_strength[i] = along;
            along = 0;
            for (int c = 0; c < keys; ++c) {
                T* row = grad + at(c, values);
                const T* old = before + at(c, values);
                const std::size_t e = at(i, keys) + at(c, 1);
                grad_k[e] -= keep * dot(old, grad_u.data(), values);
                add(-k[e], grad_u.data(), row);
                along += dot(row, old, values);
                for (int s = 0; s < values; ++s) row[s] *= keep;
            }
            grad_decay[i] = keep * along;
        };
        std::vector<T> room(u.size());
        reverse_recurrence<T>(
            rows, state_size(), [&](int i, const T* before, T* after) { advance(i, before, after, room.data()); },
            back);
    }

  private:
    T unit(const T* x, T* out, double epsilon) const {
        const T over = T{1} / std::sqrt(dot(x, x, keys) + static_cast<T>(epsilon));
        for (int c = 0; c < keys; ++c) out[c] = x[c] * over;
        return over;
    }
    void add(T scale, const T* x, T* out) const {
        for (int c = 0; c < values; ++c) out[c] += scale * x[c];
    }
    // out += scale S' x.
    void read(const T* state, T scale, const T* x, T* out) const {
        for (int c = 0; c < keys; ++c) add(scale * x[c], state + at(c, values), out);
    }
    void advance(int i, const T* before, T* after, T* u) const {
        if (starts_document(first, i)) {
            std::fill_n(after, state_size(), T{0});
        } else {
            const T keep = std::exp(decay[at(i, 1)]);
            for (std::size_t e = 0; e < state_size(); ++e) after[e] = keep * before[e];
        }
        std::fill_n(u, values, T{0});
        read(after, T{1}, &k[at(i, keys)], u);
        for (int c = 0; c < values; ++c) u[c] = strength[at(i, 1)] * (v[at(i, values) + at(c, 1)] - u[c]);
        for (int c = 0; c < keys; ++c) add(k[at(i, keys) + at(c, 1)], u, after + at(c, values));
    }
};

// Calls f(head, its state) for every value head of every sequence, then writes y.
template <class T, class F>
void for_delta_heads(workers& team, const GatedDeltaArgs<uniform_precision<T>>& a, const F& f) {
    team.run(a.rows.batch * a.value_heads, [&](int task) {
        const int b = task / a.value_heads, h = task % a.value_heads;
        delta_head<T> head(a, b, h);
        std::vector<T> none(a.state == nullptr ? head.state_size() : 0);
        f(head, a.state == nullptr ? none.data() : a.state + task * static_cast<long long>(head.state_size()));
        for (int i = 0; i < head.rows; ++i)
            std::copy_n(&head.y[head.at(i, head.values)], head.values,
                        a.y + ((a.rows.first(b) + i) * a.value_heads + h) * head.values);
    });
}

}  // namespace detail

/// See GatedDeltaArgs: the parallel form.
template <class T>
void gated_delta(workers& team, const GatedDeltaArgs<uniform_precision<T>>& a) {
    detail::for_delta_heads<T>(team, a, [&](detail::delta_head<T>& head, T* state) { head.in_chunks(state, a.chunk); });
}

/// See GatedDeltaArgs: the recurrence.
template <class T>
void gated_delta_step(workers& team, const GatedDeltaArgs<uniform_precision<T>>& a) {
    detail::for_delta_heads<T>(team, a, [](detail::delta_head<T>& head, T* state) { head.step(state); });
}

/// See GatedDeltaBackwardArgs.
template <class T>
void gated_delta_backward(workers& team, const GatedDeltaBackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    const int shared = a.value_heads / a.heads;
    for (int b = 0; b < a.rows.batch; ++b) {
        team.run(a.heads, [&](int key_head) {
            const int rows = a.rows.each.of(b);
            const std::size_t key_size = detail::delta_head<T>::at(rows, a.key_dim);
            std::vector<T> grad_q(key_size), grad_k(key_size);
            for (int h = key_head * shared; h < (key_head + 1) * shared; ++h) {
                const detail::delta_head<T> head(a, b, h);
                const auto place = [&](int i) { return (a.rows.first(b) + i) * a.value_heads + h; };
                std::vector<T> grad_y(head.v.size()), grad_v(head.v.size()), grad_decay(head.decay.size()),
                    grad_strength(head.decay.size());
                for (int i = 0; i < rows; ++i)
                    std::copy_n(g.grad_y + place(i) * a.value_dim, a.value_dim, &grad_y[head.at(i, a.value_dim)]);
                head.backward(grad_y.data(), grad_q.data(), grad_k.data(), grad_v.data(), grad_decay.data(),
                              grad_strength.data());
                for (int i = 0; i < rows; ++i) {
                    const std::size_t e = head.at(i, 1);
                    std::copy_n(&grad_v[head.at(i, a.value_dim)], a.value_dim, g.grad_v + place(i) * a.value_dim);
                    const T slope = detail::sigmoid(a.decay[place(i)] + a.dt_bias[h]);
                    const T grad_logit = -std::exp(a.a_log[h]) * grad_decay[e] * slope;
                    g.grad_decay[place(i)] = grad_logit;
                    g.grad_dt_bias[h] += grad_logit;
                    g.grad_a_log[h] += grad_decay[e] * head.decay[e];
                    g.grad_strength[place(i)] = grad_strength[e] * head.strength[e] * (T{1} - head.strength[e]);
                }
                if (h + 1 < (key_head + 1) * shared) continue;
                // Back through the unit lengths, once for all value heads.
                for (int i = 0; i < rows; ++i) {
                    const std::size_t e = head.at(i, a.key_dim);
                    const long long to = ((a.rows.first(b) + i) * a.heads + key_head) * a.key_dim;
                    const T along_q = detail::dot(&grad_q[e], &head.q[e], a.key_dim);
                    const T along_k = detail::dot(&grad_k[e], &head.k[e], a.key_dim);
                    for (int c = 0; c < a.key_dim; ++c) {
                        const std::size_t at = e + head.at(c, 1);
                        g.grad_q[to + c] = head.over_q[head.at(i, 1)] * (grad_q[at] - head.q[at] * along_q);
                        g.grad_k[to + c] = head.over_k[head.at(i, 1)] * (grad_k[at] - head.k[at] * along_k);
                    }
                }
            }
        });
    }
}

}  // namespace sdepth::inline v0::on_host
