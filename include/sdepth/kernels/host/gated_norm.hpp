// SPDX-License-Identifier: MIT
// RMS norms with a silu gate before or after them. Rank 5.
#pragma once

#include <cstddef>
#include <vector>

#include "sdepth/kernels/host/ffn.hpp"
#include "sdepth/kernels/host/norm.hpp"
#include "sdepth/ops/recurrent.hpp"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0::on_host {

namespace detail {

template <class T>
T silu(T x) {
    return x * sigmoid(x);
}

}  // namespace detail

/// See GatedNormArgs.
template <class T>
void gated_norm(workers& team, const GatedNormArgs<uniform_precision<T>>& a) {
    const bool before = a.gate != nullptr && a.place == gate_place::before;
    const bool after = a.gate != nullptr && a.place == gate_place::after;
    for_rows(team, a.rows, [&](long long row) {
        std::vector<T> u(static_cast<std::size_t>(a.width));
        for (int group = 0; group < a.groups; ++group) {
            const long long at = (row * a.groups + group) * a.width;
            const auto gate = [&](int c) { return detail::silu(a.gate[at + c]); };
            for (int c = 0; c < a.width; ++c)
                u[static_cast<std::size_t>(c)] = before ? a.x[at + c] * gate(c) : a.x[at + c];
            a.rstd[row * a.groups + group] = detail::normalise(u.data(), a.weight, a.y + at, a.width, a.epsilon);
            for (int c = 0; after && c < a.width; ++c) a.y[at + c] *= gate(c);
        }
    });
}

/// See GatedNormBackwardArgs.
template <class T>
void gated_norm_backward(workers& team, const GatedNormBackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    const bool before = a.gate != nullptr && a.place == gate_place::before;
    const bool after = a.gate != nullptr && a.place == gate_place::after;
    for_rows_with_sums(team, a.rows, a.width, g.grad_weight, [&](long long row, T* sums) {
        const auto width = static_cast<std::size_t>(a.width);
        std::vector<T> u(width), grad_n(width), grad_u(width);
        for (int group = 0; group < a.groups; ++group) {
            const long long at = (row * a.groups + group) * a.width;
            const T rstd = a.rstd[row * a.groups + group];
            const auto gate = [&](std::size_t c) {
                return detail::nonlinear(activation::silu, a.gate[at + static_cast<long long>(c)]);
            };
            for (std::size_t c = 0; c < width; ++c) {
                const long long e = at + static_cast<long long>(c);
                u[c] = before ? a.x[e] * gate(c).value : a.x[e];
                grad_n[c] = after ? g.grad_y[e] * gate(c).value : g.grad_y[e];
                if (after) g.grad_gate[e] = g.grad_y[e] * a.weight[c] * u[c] * rstd * gate(c).slope;
            }
            detail::normalise_backward(u.data(), a.weight, rstd, grad_n.data(), grad_u.data(), false, sums, a.width);
            for (std::size_t c = 0; c < width; ++c) {
                const long long e = at + static_cast<long long>(c);
                if (before) g.grad_gate[e] = grad_u[c] * a.x[e] * gate(c).slope;
                g.grad_x[e] = before ? grad_u[c] * gate(c).value : grad_u[c];
            }
        }
    });
}

}  // namespace sdepth::inline v0::on_host
