// SPDX-License-Identifier: MIT
// RMS normalisation, and gathering and scattering of rows. Rank 5.
#pragma once

#include <algorithm>
#include <cmath>

#include "sdepth/kernels/host/parallel.hpp"
#include "sdepth/kernels/host/vector.hpp"
#include "sdepth/ops/norm.hpp"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0::on_host {

namespace detail {

// y = weight x rstd of `width` numbers; returns rstd.
template <class T>
T normalise(const T* x, const T* weight, T* y, int width, double epsilon) {
    const T rstd = T{1} / std::sqrt(dot(x, x, width) / static_cast<T>(width) + static_cast<T>(epsilon));
    for (int c = 0; c < width; ++c) y[c] = weight[c] * x[c] * rstd;
    return rstd;
}

// Writes or adds grad_x, and adds to grad_weight. grad_x may be grad_y.
template <class T>
void normalise_backward(const T* x, const T* weight, T rstd, const T* grad_y, T* grad_x, bool adds, T* grad_weight,
                        int width) {
    T part[16] = {};
    int c = 0;
    for (; c + 16 <= width; c += 16)
        for (int u = 0; u < 16; ++u) part[u] += weight[c + u] * grad_y[c + u] * x[c + u];
    for (; c < width; ++c) part[0] += weight[c] * grad_y[c] * x[c];
    for (int u = 1; u < 16; ++u) part[0] += part[u];
    const T along = rstd * rstd * part[0] / static_cast<T>(width);
    for (c = 0; c < width; ++c) grad_weight[c] += grad_y[c] * x[c] * rstd;
    if (adds)
        for (c = 0; c < width; ++c) grad_x[c] += rstd * (weight[c] * grad_y[c] - x[c] * along);
    else
        for (c = 0; c < width; ++c) grad_x[c] = rstd * (weight[c] * grad_y[c] - x[c] * along);
}

}  // namespace detail

/// See RmsNormArgs.
template <class T>
void rms_norm(workers& team, const RmsNormArgs<uniform_precision<T>>& a) {
    for_rows(team, a.rows, [&](long long row) {
        a.rstd[row] = detail::normalise(a.x + row * a.width, a.weight, a.y + row * a.width, a.width, a.epsilon);
    });
}

/// See RmsNormBackwardArgs.
template <class T>
void rms_norm_backward(workers& team, const RmsNormBackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    for_rows_with_sums(team, a.rows, a.width, g.grad_weight, [&](long long row, T* grad_weight) {
        const long long at = row * a.width;
        detail::normalise_backward(a.x + at, a.weight, a.rstd[row], g.grad_y + at, g.grad_x + at, g.adds_to_grad_x,
                                   grad_weight, a.width);
        if (g.also == nullptr) return;
        for (int c = 0; c < a.width; ++c) g.also[at + c] += g.grad_x[at + c];
    });
}

/// See GatherArgs.
template <class T>
void gather(workers& team, const GatherArgs<uniform_precision<T>>& a) {
    for_rows(team, a.rows, [&](long long row) {
        const long long from = row / a.rows.each.capacity * a.sequence + a.ids[row];
        std::copy_n(a.x + from * a.width, a.width, a.out + row * a.width);
    });
}

/// See ScatterArgs.
template <class T>
void scatter(workers& team, const ScatterArgs<uniform_precision<T>>& a) {
    for_rows(team, a.rows, [&](long long row) {
        const long long to = row / a.rows.each.capacity * a.sequence + a.ids[row];
        const T* out = a.out + row * a.width;
        T* x = a.x + to * a.width;
        for (int c = 0; c < a.width; ++c) x[c] = a.adds ? x[c] + out[c] : out[c];
    });
}

/// See AddArgs.
template <class T>
void add(workers& team, const AddArgs<uniform_precision<T>>& args) {
    for_rows(team, args.rows, [&](long long row) {
        const long long at = row * args.width;
        for (int c = 0; c < args.width; ++c) args.sum[at + c] = args.x[at + c] + args.a[at + c];
    });
}

}  // namespace sdepth::inline v0::on_host
