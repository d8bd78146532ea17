// SPDX-License-Identifier: MIT
// The non-linear middle of feed-forward parts. Rank 5.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>

#include "sdepth/kernels/host/parallel.hpp"
#include "sdepth/kernels/host/vector.hpp"
#include "sdepth/ops/ffn.hpp"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0::on_host {

namespace detail {

/// A non-linearity and its slope at x.
template <class T>
struct value_and_slope {
    T value, slope;
};

template <class T>
value_and_slope<T> nonlinear(activation kind, T x) {
    if (kind == activation::relu) return x > T{0} ? value_and_slope<T>{x, T{1}} : value_and_slope<T>{T{0}, T{0}};
    if (kind == activation::silu) {
        const T s = sigmoid(x);
        return {x * s, s + x * s * (T{1} - s)};
    }
    const T below = T{0.5} * std::erfc(-x / std::numbers::sqrt2_v<T>);  // Phi(x)
    const T density = std::exp(T{-0.5} * x * x) * (std::numbers::inv_sqrtpi_v<T> / std::numbers::sqrt2_v<T>);
    return {x * below, below + x * density};
}

}  // namespace detail

/// See SwigluArgs.
template <class T>
void swiglu(workers& team, const SwigluArgs<uniform_precision<T>>& a) {
    for_rows(team, a.rows, [&](long long row) {
        const T* gate = a.gate + row * a.hidden;
        const T* up = a.up + row * a.hidden;
        T* act = a.act + row * a.hidden;
        for (int c = 0; c < a.hidden; ++c) act[c] = gate[c] * detail::sigmoid(gate[c]) * up[c];
    });
}

/// See SwigluBackwardArgs.
template <class T>
void swiglu_backward(workers& team, const SwigluBackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    constexpr int strip = 64;  // copied first, for grad_up may be grad_act
    for_rows(team, a.rows, [&](long long row) {
        T grad[strip];
        for (int first = 0; first < a.hidden; first += strip) {
            const long long at = row * a.hidden + first;
            const int n = std::min(strip, a.hidden - first);
            std::copy_n(g.grad_act + at, n, grad);
            const T* gate = a.gate + at;
            const T* up = a.up + at;
            T* grad_gate = g.grad_gate + at;
            T* grad_up = g.grad_up + at;
            for (int c = 0; c < n; ++c) {
                const T s = detail::sigmoid(gate[c]);
                grad_gate[c] = grad[c] * up[c] * (s + gate[c] * s * (T{1} - s));
                grad_up[c] = grad[c] * gate[c] * s;
            }
        }
    });
}

/// See ActivationArgs.
template <class T>
void activation(workers& team, const ActivationArgs<uniform_precision<T>>& a) {
    for_rows(team, a.rows, [&](long long row) {
        const T* x = a.x + row * a.hidden;
        T* act = a.act + row * a.hidden;
        for (int c = 0; c < a.hidden; ++c) act[c] = detail::nonlinear(a.kind, x[c]).value;
    });
}

/// See ActivationBackwardArgs.
template <class T>
void activation_backward(workers& team, const ActivationBackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    for_rows(team, a.rows, [&](long long row) {
        const T* x = a.x + row * a.hidden;
        const T* grad_act = g.grad_act + row * a.hidden;
        T* grad_x = g.grad_x + row * a.hidden;
        for (int c = 0; c < a.hidden; ++c) grad_x[c] = grad_act[c] * detail::nonlinear(a.kind, x[c]).slope;
    });
}

}  // namespace sdepth::inline v0::on_host
