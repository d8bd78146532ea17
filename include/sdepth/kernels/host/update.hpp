// SPDX-License-Identifier: MIT
// The optimiser's operations: sum of squares, AdamW, Muon. Rank 5.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sdepth/kernels/host/gemm.hpp"
#include "sdepth/ops/update.hpp"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0::on_host {

namespace detail {

// Calls f(first, last) for neighbouring parts of `count` numbers, of a fixed size.
template <class F>
void for_parts(workers& team, long long count, const F& f) {
    constexpr long long size = 1 << 14;
    team.run(static_cast<int>((count + size - 1) / size),
             [&](int part) { f(part * size, std::min(count, (part + 1) * size)); });
}

// Sum of squares in double, in a fixed order.
template <class T>
double sum_of_squares(workers& team, const T* x, long long count) {
    constexpr long long size = 1 << 14;
    std::vector<double> sums(static_cast<std::size_t>((count + size - 1) / size));
    team.run(static_cast<int>(sums.size()), [&](int part) {
        const long long first = part * size, n = std::min(count - first, size);
        double lane[8] = {};
        long long i = 0;
        for (; i + 8 <= n; i += 8)
            for (int u = 0; u < 8; ++u)
                lane[u] += static_cast<double>(x[first + i + u]) * static_cast<double>(x[first + i + u]);
        for (; i < n; ++i) lane[0] += static_cast<double>(x[first + i]) * static_cast<double>(x[first + i]);
        for (const double sum : lane) sums[static_cast<std::size_t>(part)] += sum;
    });
    double total = 0;
    for (const double sum : sums) total += sum;
    return total;
}

}  // namespace detail

/// See SquaresArgs.
template <class T>
void squares(workers& team, const SquaresArgs<uniform_precision<T>>& a) {
    *a.sum += detail::sum_of_squares(team, a.grad, a.count);
}

/// See BeginUpdateArgs.
inline void begin_update(const BeginUpdateArgs& a) { *a.scalars = scalars_of(a); }

namespace detail {

// One layer's tensor.
template <class T>
void adamw_layer(workers& team, const AdamwArgs<uniform_precision<T>>& a, long long layer) {
    const update_scalars& s = *a.scalars;
    const T beta1 = static_cast<T>(a.beta1), beta2 = static_cast<T>(a.beta2), scale = static_cast<T>(s.grad_scale);
    const T rest1 = static_cast<T>(1 - a.beta1), rest2 = static_cast<T>(1 - a.beta2);
    const T rate = static_cast<T>(a.share * s.rate), decay = static_cast<T>(a.decay),
            epsilon = static_cast<T>(a.epsilon);
    const T correct1 = static_cast<T>(s.correct1), correct2 = static_cast<T>(s.correct2);
    constexpr int strip = 64;  // the square roots stand in a loop of their own: they keep compilers from vectorising it
    for_parts(team, a.count, [&](long long from, long long last) {
        T root[strip];
        for (long long at = from; at < last; at += strip) {
            const int n = static_cast<int>(std::min<long long>(strip, last - at));
            const T* grad = a.grad + layer * a.grad_stride + at;
            const long long place = layer * a.stride + at;
            T *weight = a.master + place, *m = a.first + place, *v = a.second + layer * a.second_stride + at;
            for (int i = 0; i < n; ++i) m[i] = beta1 * m[i] + rest1 * (scale * grad[i]);
            for (int i = 0; i < n; ++i) v[i] = beta2 * v[i] + rest2 * (scale * grad[i]) * (scale * grad[i]);
            for (int i = 0; i < n; ++i) root[i] = std::sqrt(v[i] * correct2);
            for (int i = 0; i < n; ++i) weight[i] -= rate * (m[i] * correct1 / (root[i] + epsilon) + decay * weight[i]);
        }
    });
}

}  // namespace detail

/// See AdamwArgs.
template <class T>
void adamw(workers& team, const AdamwArgs<uniform_precision<T>>& a) {
    if (a.scalars->finite == 0) return;
    for (long long layer = 0; layer < a.layers; ++layer) detail::adamw_layer<T>(team, a, layer);
}

/// See MuonArgs. With X the nesterov momentum over its Frobenius norm, five times
/// X = a X + (b G + c G G) X, G = X X' (or from the right with G = X' X, whichever is smaller), a = 3.4445, b =
/// -4.7750, c = 2.0315.
template <class T>
void muon(workers& team, const MuonArgs<uniform_precision<T>>& a) {
    const long long size = static_cast<long long>(a.rows) * a.cols;
    const int least = std::min(a.rows, a.cols);
    T* x = a.scratch;
    T* turned = x + size;
    T* gram = turned + size;
    T* polynomial = gram + static_cast<long long>(least) * least;
    const update_scalars& s = *a.scalars;
    if (s.finite == 0) return;
    const T momentum = static_cast<T>(a.momentum), scale = static_cast<T>(s.grad_scale);
    const T keep = static_cast<T>(1 - s.rate * a.decay);
    for (long long item = 0; item < a.layers * a.matrices; ++item) {
        const long long layer = item / a.matrices, matrix = item % a.matrices, place = layer * a.stride + matrix * size;
        T* weight = a.master + place;
        T* first = a.first + place;
        const T* grad = a.grad + layer * a.grad_stride + matrix * size;
        detail::for_parts(team, size, [&](long long begin, long long end) {
            for (long long i = begin; i < end; ++i) {
                const T g = scale * grad[i];
                first[i] = momentum * first[i] + g;
                x[i] = a.nesterov ? g + momentum * first[i] : first[i];
            }
        });
        const T norm = static_cast<T>(std::sqrt(detail::sum_of_squares(team, x, size)));
        const T shrink = norm > T{0} ? T{1} / norm : T{0};
        detail::for_parts(team, size, [&](long long begin, long long end) {
            for (long long i = begin; i < end; ++i) x[i] *= shrink;
        });

        const bool wide = a.rows <= a.cols;
        for (int step = 0; step < a.steps; ++step) {
            const operand<T> now{x, a.cols}, transposed{x, a.cols, true};
            multiply(team, product<T>{least, least, wide ? a.cols : a.rows, wide ? now : transposed,
                                      wide ? transposed : now, gram, least});
            std::copy_n(gram, static_cast<long long>(least) * least, polynomial);
            multiply(team, product<T>{least,
                                      least,
                                      least,
                                      {gram, least},
                                      {gram, least},
                                      polynomial,
                                      least,
                                      static_cast<T>(2.0315),
                                      static_cast<T>(-4.7750)});
            std::copy_n(x, size, turned);
            const operand<T> by{polynomial, least};
            multiply(team, product<T>{a.rows, a.cols, least, wide ? by : now, wide ? now : by, turned, a.cols, T{1},
                                      static_cast<T>(3.4445)});
            std::swap(x, turned);
        }
        const T change = static_cast<T>(s.rate * muon_scale(a, detail::sum_of_squares(team, x, size)));
        detail::for_parts(team, size, [&](long long begin, long long end) {
            for (long long i = begin; i < end; ++i) weight[i] = keep * weight[i] - change * x[i];
        });
    }
}

}  // namespace sdepth::inline v0::on_host
