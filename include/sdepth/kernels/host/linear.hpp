// SPDX-License-Identifier: MIT
// Products of rows with a weight matrix, forward and backward. Rank 5.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sdepth/kernels/host/gemm.hpp"
#include "sdepth/ops/linear.hpp"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0::on_host {

/// See LinearArgs.
template <class T>
void linear(workers& team, const LinearArgs<uniform_precision<T>>& a) {
    for (const row_range& range : live_ranges(a.rows)) {
        product<T> m{static_cast<int>(range.count), a.outputs, a.inputs};
        m.a = {a.x + range.first * a.inputs, a.inputs};
        m.b = {a.weight, a.inputs, true};
        m.c = a.y + range.first * a.outputs;
        m.stride = a.outputs;
        multiply(team, m);
    }
    if (a.bias == nullptr) return;
    for_rows(team, a.rows, [&](long long row) {
        T* y = a.y + row * a.outputs;
        for (int c = 0; c < a.outputs; ++c) y[c] += a.bias[c];
    });
}

/// See LinearBackwardArgs: grad_x = grad_y W, grad_weight += grad_y' x.
template <class T>
void linear_backward(workers& team, const LinearBackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    if (!g.adds_to_grad_weight) {
        const long long elements = static_cast<long long>(a.outputs) * a.inputs;
        std::fill(g.grad_weight, g.grad_weight + elements, T{0});
    }
    for (const row_range& range : live_ranges(a.rows)) {
        const T* grad_y = g.grad_y + range.first * a.outputs;
        const int rows = static_cast<int>(range.count);
        if (g.grad_x != nullptr) {
            product<T> m{rows, a.inputs, a.outputs};
            m.a = {grad_y, a.outputs};
            m.b = {a.weight, a.inputs};
            m.c = g.grad_x + range.first * a.inputs;
            m.stride = a.inputs;
            m.beta = g.adds_to_grad_x ? T{1} : T{0};
            multiply(team, m);
        }
        product<T> m{a.outputs, a.inputs, rows};
        m.a = {grad_y, a.outputs, true};
        m.b = {a.x + range.first * a.inputs, a.inputs};
        m.c = g.grad_weight;
        m.stride = a.inputs;
        m.beta = T{1};
        multiply(team, m);
    }
    if (g.grad_bias == nullptr) return;
    for_rows_with_sums(team, a.rows, a.outputs, g.grad_bias, [&](long long row, T* sums) {
        const T* grad_y = g.grad_y + row * a.outputs;
        for (int c = 0; c < a.outputs; ++c) sums[c] += grad_y[c];
    });
}

}  // namespace sdepth::inline v0::on_host
