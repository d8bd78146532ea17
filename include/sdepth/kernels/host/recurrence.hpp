// SPDX-License-Identifier: MIT
// What recurrent operations share: going back through a recurrence, and one head whose state decays by a number a row,
// as in linear attention and Mamba-2. Rank 5.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sdepth/kernels/host/vector.hpp"

namespace sdepth::inline v0::on_host::detail {

/// Whether row i starts a document after the first.
inline bool starts_document(const int* first, int i) { return i > 0 && first != nullptr && first[i] == i; }

/// Whether row i belongs to the document that was open before row `begin`; for row 0, to that of the state.
inline bool continues(const int* first, int i, int begin) {
    return first == nullptr || first[i] < begin || (begin == 0 && first[i] == 0);
}

/// First row of i's document in a chunk of rows that begins with row `begin`.
inline int start_in_chunk(const int* first, int i, int begin) {
    return first == nullptr ? begin : std::max(first[i], begin);
}

/// Decays from the rows of i's document in its chunk to row i: weights[j - begin] = e^(decay_{j+1} + ... + decay_i);
/// returns that from before the chunk, 0 where the document starts inside. Sums of numbers that are not positive, never
/// differences of running sums: nothing overflows, and small decays survive beside large ones.
template <class T>
T chunk_decays(const int* first, const T* decay, int begin, int i, T* weights) {
    T sum = 0;
    for (int j = i; j >= start_in_chunk(first, i, begin); --j) {
        weights[j - begin] = std::exp(sum);
        sum += decay[j];
    }
    return continues(first, i, begin) ? std::exp(sum) : T{0};
}

/// Goes through a recurrence from the last row to the first, from states that it computes again: all states of a
/// stretch of rows are kept at a time, and one at the start of each stretch.
/// @param advance  advance(i, before, after): the state after row i; before may be after
/// @param back     back(i, before, after, grad): grad of the state after row i becomes that of the state before
template <class T, class Advance, class Back>
void reverse_recurrence(int rows, std::size_t size, const Advance& advance, const Back& back) {
    constexpr int stretch = 32;
    const auto stretches = static_cast<std::size_t>((rows + stretch - 1) / stretch);
    std::vector<T> starts(stretches * size), states((stretch + 1) * size), grad(size);
    T* state = states.data();
    for (int i = 0; i < rows; ++i) {
        if (i % stretch == 0) std::copy_n(state, size, starts.data() + static_cast<std::size_t>(i / stretch) * size);
        advance(i, state, state);
    }
    for (std::size_t s = stretches; s-- > 0;) {
        const int begin = static_cast<int>(s) * stretch, n = std::min(stretch, rows - begin);
        std::copy_n(starts.data() + s * size, size, state);
        for (int i = 0; i < n; ++i)
            advance(begin + i, state + static_cast<std::size_t>(i) * size,
                    state + static_cast<std::size_t>(i + 1) * size);
        for (int i = n; i-- > 0;)
            back(begin + i, state + static_cast<std::size_t>(i) * size, state + static_cast<std::size_t>(i + 1) * size,
                 grad.data());
    }
}

/// One head of S_i = e^(decay_i) S_{i-1} + k_i v_i', y_i = S_i' q_i over the rows of one sequence. No decay is
/// positive.
template <class T>
struct decaying_head {
    int rows = 0, keys = 0, values = 0;
    const int* first = nullptr;     // [rows] or null
    std::vector<T> q, k, v, decay;  // [rows, keys], the same, [rows, values], [rows]
    std::vector<T> y;               // [rows, values]

    decaying_head(int live, int key_dim, int value_dim, const int* document_starts)
        : rows(live),
          keys(key_dim),
          values(value_dim),
          first(document_starts),
          q(at(live, keys)),
          k(at(live, keys)),
          v(at(live, values)),
          decay(at(live, 1)),
          y(at(live, values)) {}

    static std::size_t at(int row, int width) {
        return static_cast<std::size_t>(row) * static_cast<std::size_t>(width);
    }
    std::size_t state_size() const { return at(keys, values); }

    /// The recurrence. `state` [keys, values] goes from before row 0 to after the last.
    void step(T* state) {
        for (int i = 0; i < rows; ++i) {
            advance(i, state, state);
            read_out(i, state, T{1});
        }
    }

    /// The same by chunks: inside a chunk each row meets each earlier one, across chunks goes the state.
    void in_chunks(T* state, int chunk) {
        std::vector<T> weights(at(std::min(chunk, rows), 1));
        for (int begin = 0; begin < rows; begin += chunk) {
            const int last = std::min(rows, begin + chunk) - 1;
            for (int i = begin; i <= last; ++i) {
                const T carried = chunk_decays(first, decay.data(), begin, i, weights.data());
                if (carried > T{0}) read_out(i, state, carried);
                for (int j = start_in_chunk(first, i, begin); j <= i; ++j) {
                    const T score = dot(&q[at(i, keys)], &k[at(j, keys)], keys) * weights[at(j - begin, 1)];
                    for (int c = 0; c < values; ++c) y[at(i, values) + at(c, 1)] += score * v[at(j, values) + at(c, 1)];
                }
            }
            const T carried = chunk_decays(first, decay.data(), begin, last, weights.data());
            for (std::size_t e = 0; e < state_size(); ++e) state[e] = carried > T{0} ? carried * state[e] : T{0};
            for (int j = start_in_chunk(first, last, begin); j <= last; ++j)
                add_outer(j, weights[at(j - begin, 1)], state);
        }
    }

    /// Gradients of q, k, v and decay from that of y; all overwritten.
    void backward(const T* grad_y, T* grad_q, T* grad_k, T* grad_v, T* grad_decay) const {
        const auto back = [&](int i, const T* before, const T* after, T* grad) {
            const T* gy = grad_y + at(i, values);
            const T keep = starts_document(first, i) ? T{0} : std::exp(decay[at(i, 1)]);
            T along = 0;
            std::fill_n(grad_v + at(i, values), values, T{0});
            for (int a = 0; a < keys; ++a) {
                T* row = grad + at(a, values);
                const T qa = q[at(i, keys) + at(a, 1)], ka = k[at(i, keys) + at(a, 1)];
                grad_q[at(i, keys) + at(a, 1)] = dot(after + at(a, values), gy, values);
                for (int c = 0; c < values; ++c) row[c] += qa * gy[c];
                grad_k[at(i, keys) + at(a, 1)] = dot(row, &v[at(i, values)], values);
                for (int c = 0; c < values; ++c) grad_v[at(i, values) + at(c, 1)] += ka * row[c];
                along += dot(row, before + at(a, values), values);
                for (int c = 0; c < values; ++c) row[c] *= keep;
            }
            grad_decay[i] = along * keep;
        };
        reverse_recurrence<T>(
            rows, state_size(), [&](int i, const T* before, T* after) { advance(i, before, after); }, back);
    }

  private:
    void advance(int i, const T* before, T* after) const {
        if (starts_document(first, i)) {
            std::fill_n(after, state_size(), T{0});
        } else {
            const T keep = std::exp(decay[at(i, 1)]);
            for (std::size_t e = 0; e < state_size(); ++e) after[e] = keep * before[e];
        }
        add_outer(i, T{1}, after);
    }
    void add_outer(int i, T scale, T* state) const {
        for (int a = 0; a < keys; ++a) {
            const T weight = scale * k[at(i, keys) + at(a, 1)];
            for (int c = 0; c < values; ++c) state[at(a, values) + at(c, 1)] += weight * v[at(i, values) + at(c, 1)];
        }
    }
    void read_out(int i, const T* state, T scale) {
        for (int a = 0; a < keys; ++a) {
            const T weight = scale * q[at(i, keys) + at(a, 1)];
            for (int c = 0; c < values; ++c) y[at(i, values) + at(c, 1)] += weight * state[at(a, values) + at(c, 1)];
        }
    }
};

}  // namespace sdepth::inline v0::on_host::detail
