// SPDX-License-Identifier: MIT
// Preparation of queries and keys: norm, then rotary phases. Rank 5.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include "sdepth/kernels/host/norm.hpp"
#include "sdepth/ops/rotary.hpp"

namespace sdepth::inline v0::on_host {

namespace detail {

// Cosines and sines of the positions 0 .. count - 1.
template <class T>
struct phases {
    int pairs = 0;
    std::vector<T> cosine, sine;  // [count, pairs]

    phases(int head_dim, double base, int count) : pairs(head_dim / 2) {
        std::vector<double> speed;
        speed.reserve(static_cast<std::size_t>(pairs));
        for (int c = 0; c < pairs; ++c) speed.push_back(std::pow(base, -2.0 * c / head_dim));
        for (int position = 0; position < count; ++position)
            for (const double s : speed) {
                cosine.push_back(static_cast<T>(std::cos(position * s)));
                sine.push_back(static_cast<T>(std::sin(position * s)));
            }
    }

    // Turns every head of a row by the angles of its position, or back by `direction` = -1.
    void turn(T* row, int heads, int position, T direction) const {
        const T* co = cosine.data() + std::ptrdiff_t{position} * pairs;
        const T* si = sine.data() + std::ptrdiff_t{position} * pairs;
        for (int head = 0; head < heads; ++head, row += 2 * pairs)
            for (int c = 0; c < pairs; ++c) {
                const T low = row[c], high = row[c + pairs];
                row[c] = low * co[c] - high * (direction * si[c]);
                row[c + pairs] = high * co[c] + low * (direction * si[c]);
            }
    }
};

template <class T>
int position_of(const QkPrepareArgs<uniform_precision<T>>& a, long long row) {
    return a.positions != nullptr ? a.positions[row] : static_cast<int>(row % a.rows.each.capacity);
}

// The phases that the live rows need.
template <class T>
phases<T> phases_of(const QkPrepareArgs<uniform_precision<T>>& a) {
    if (!a.rotary) return {a.head_dim, a.base, 0};
    if (a.head_dim % 2 != 0)
        throw error("qk_prepare: rotary phases need an even head_dim; change it or leave them out");
    int count = 0;
    for (const row_range& range : live_ranges(a.rows))
        for (long long row = range.first; row < range.end(); ++row) {
            const int position = position_of<T>(a, row);
            if (position < 0) throw error("qk_prepare: a position is negative; positions count from 0");
            count = position < count ? count : position + 1;
        }
    return {a.head_dim, a.base, count};
}

}  // namespace detail

/// See QkPrepareArgs.
template <class T>
void qk_prepare(workers& team, const QkPrepareArgs<uniform_precision<T>>& a) {
    const int width = a.heads * a.head_dim;
    const detail::phases<T> phases = detail::phases_of<T>(a);
    for_rows(team, a.rows, [&](long long row) {
        const T* x = a.x + row * width;
        T* y = a.y + row * width;
        if (a.norm == qk_norm::none)
            for (int c = 0; c < width; ++c) y[c] = x[c];
        else if (a.norm == qk_norm::full_width)
            a.rstd[row] = detail::normalise(x, a.weight, y, width, a.epsilon);
        else
            for (int head = 0; head < a.heads; ++head)
                a.rstd[row * a.heads + head] =
                    detail::normalise(x + head * a.head_dim, a.weight, y + head * a.head_dim, a.head_dim, a.epsilon);
        if (a.rotary) phases.turn(y, a.heads, detail::position_of<T>(a, row), T{1});
    });
}

/// See QkPrepareBackwardArgs.
template <class T>
void qk_prepare_backward(workers& team, const QkPrepareBackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    const int width = a.heads * a.head_dim;
    const detail::phases<T> phases = detail::phases_of<T>(a);
    const int weights = a.norm == qk_norm::full_width ? width : a.head_dim;
    T* grad_weight = a.norm == qk_norm::none ? nullptr : g.grad_weight;
    for_rows_with_sums(team, a.rows, weights, grad_weight, [&](long long row, T* sums) {
        const T* x = a.x + row * width;
        const T* grad_y = g.grad_y + row * width;
        T* grad_x = g.grad_x + row * width;
        for (int c = 0; c < width; ++c) grad_x[c] = grad_y[c];
        if (a.rotary) phases.turn(grad_x, a.heads, detail::position_of<T>(a, row), T{-1});
        if (a.norm == qk_norm::full_width)
            detail::normalise_backward(x, a.weight, a.rstd[row], grad_x, grad_x, false, sums, width);
        else if (a.norm == qk_norm::per_head)
            for (int c = 0, head = 0; head < a.heads; ++head, c += a.head_dim)
                detail::normalise_backward(x + c, a.weight, a.rstd[row * a.heads + head], grad_x + c, grad_x + c, false,
                                           sums, a.head_dim);
    });
}

}  // namespace sdepth::inline v0::on_host
