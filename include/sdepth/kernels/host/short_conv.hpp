// SPDX-License-Identifier: MIT
// Short causal convolutions that begin anew at document starts, and their tail in decoding. Rank 5.
#pragma once

#include <cstddef>
#include <vector>

#include "sdepth/kernels/host/ffn.hpp"
#include "sdepth/kernels/host/parallel.hpp"
#include "sdepth/ops/recurrent.hpp"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0::on_host {

namespace detail {

// Input `back` rows before row i of sequence b; null before the document's start.
template <class T>
const T* input_before(const ShortConvArgs<uniform_precision<T>>& a, int b, int i, int back) {
    const int from = i - back;
    const int start = a.first == nullptr || i < 0 ? 0 : a.first[a.rows.first(b) + i];
    if (from >= start) return a.x + (a.rows.first(b) + from) * a.channels;
    const bool in_tail = a.tail != nullptr && start == 0 && from + a.width - 1 >= 0;
    return in_tail ? a.tail + (static_cast<long long>(b) * (a.width - 1) + from + a.width - 1) * a.channels : nullptr;
}

// The sum before its silu, for one row.
template <class T>
void convolve(const ShortConvArgs<uniform_precision<T>>& a, long long row, T* sum) {
    const int b = static_cast<int>(row / a.rows.each.capacity), i = static_cast<int>(row % a.rows.each.capacity);
    for (int c = 0; c < a.channels; ++c) sum[c] = a.bias == nullptr ? T{0} : a.bias[c];
    for (int t = 0; t < a.width; ++t) {
        const T* x = input_before(a, b, i, t);
        if (x == nullptr) break;
        const T* weight = a.weight + a.width - 1 - t;
        for (int c = 0; c < a.channels; ++c) sum[c] += weight[std::ptrdiff_t{c} * a.width] * x[c];
    }
}

}  // namespace detail

/// See ShortConvArgs.
template <class T>
void short_conv(workers& team, const ShortConvArgs<uniform_precision<T>>& a) {
    for_rows(team, a.rows, [&](long long row) {
        T* y = a.y + row * a.channels;
        detail::convolve(a, row, y);
        for (int c = 0; c < a.channels; ++c) y[c] *= detail::sigmoid(y[c]);
    });
    if (a.tail == nullptr) return;
    std::vector<T> tail(static_cast<std::size_t>(a.width - 1) * static_cast<std::size_t>(a.channels));
    for (int b = 0; b < a.rows.batch; ++b) {
        const int live = a.rows.each.of(b);
        if (live == 0) continue;
        std::fill(tail.begin(), tail.end(), T{0});
        for (int t = 0; t + 1 < a.width; ++t) {
            const T* x = detail::input_before(a, b, live - 1, t);
            if (x != nullptr) std::copy_n(x, a.channels, tail.end() - std::ptrdiff_t{t + 1} * a.channels);
        }
        std::copy(tail.begin(), tail.end(), a.tail + b * static_cast<std::ptrdiff_t>(tail.size()));
    }
}

/// See ShortConvBackwardArgs.
template <class T>
void short_conv_backward(workers& team, const ShortConvBackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    const int weights = a.channels * a.width;
    std::vector<T> grad_sum(static_cast<std::size_t>(a.rows.capacity()) * static_cast<std::size_t>(a.channels));
    std::vector<T> total(static_cast<std::size_t>(weights + a.channels));
    for_rows_with_sums(team, a.rows, weights + a.channels, total.data(), [&](long long row, T* sums) {
        const int b = static_cast<int>(row / a.rows.each.capacity), i = static_cast<int>(row % a.rows.each.capacity);
        T* grad = grad_sum.data() + row * a.channels;
        detail::convolve(a, row, grad);
        for (int c = 0; c < a.channels; ++c) {
            grad[c] = g.grad_y[row * a.channels + c] * detail::nonlinear(activation::silu, grad[c]).slope;
            sums[weights + c] += grad[c];
        }
        for (int t = 0; t < a.width; ++t) {
            const T* x = detail::input_before(a, b, i, t);
            if (x == nullptr) break;
            for (int c = 0; c < a.channels; ++c) sums[c * a.width + a.width - 1 - t] += grad[c] * x[c];
        }
    });
    for (int e = 0; e < weights; ++e) g.grad_weight[e] += total[static_cast<std::size_t>(e)];
    if (g.grad_bias != nullptr)
        for (int c = 0; c < a.channels; ++c) g.grad_bias[c] += total[static_cast<std::size_t>(weights + c)];
    for_rows(team, a.rows, [&](long long row) {
        const int b = static_cast<int>(row / a.rows.each.capacity), i = static_cast<int>(row % a.rows.each.capacity);
        T* grad_x = g.grad_x + row * a.channels;
        std::fill_n(grad_x, a.channels, T{0});
        for (int t = 0; t < a.width && i + t < a.rows.each.of(b); ++t) {
            if (a.first != nullptr && a.first[row + t] > i) break;
            const T* grad = grad_sum.data() + (row + t) * a.channels;
            for (int c = 0; c < a.channels; ++c)
                grad_x[c] += a.weight[std::ptrdiff_t{c} * a.width + a.width - 1 - t] * grad[c];
        }
    });
}

}  // namespace sdepth::inline v0::on_host
