// SPDX-License-Identifier: MIT
// Embedding, and the output head with its cross-entropy. Rank 5.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <vector>

#include "sdepth/kernels/host/gemm.hpp"
#include "sdepth/kernels/host/vector.hpp"
#include "sdepth/ops/ends.hpp"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0::on_host {

namespace detail {

inline void check_token(int token, int vocab, const char* what) {
    if (token >= vocab || token < 0)
        throw error(std::string(what) + ": token " + std::to_string(token) + " is outside the vocabulary of " +
                    std::to_string(vocab) + "; the data and the model need the same tokenizer");
}

}  // namespace detail

/// See EmbedArgs. Throws sdepth::error on a token outside the vocabulary.
template <class T>
void embed(workers& team, const EmbedArgs<uniform_precision<T>>& a) {
    for_rows(team, a.rows, [&](long long row) {
        detail::check_token(a.tokens[row], a.vocab, "embed");
        std::copy_n(a.table + std::ptrdiff_t{a.tokens[row]} * a.width, a.width, a.x + row * a.width);
    });
}

/// See EmbedBackwardArgs. Threads share the columns, so that rows of one token meet in order.
template <class T>
void embed_backward(workers& team, const EmbedBackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    constexpr int strip = 64;
    const std::vector<row_range> ranges = live_ranges(a.rows);
    team.run((a.width + strip - 1) / strip, [&](int task) {
        const int first = task * strip, last = std::min(a.width, first + strip);
        for (const row_range& range : ranges)
            for (long long row = range.first; row < range.end(); ++row) {
                const T* grad_x = g.grad_x + row * a.width;
                T* grad = g.grad_table + std::ptrdiff_t{a.tokens[row]} * a.width;
                for (int c = first; c < last; ++c) grad[c] += grad_x[c];
            }
    });
}

/// See HeadLossArgs. Throws sdepth::error on a target outside the vocabulary.
template <class T>
void head_loss(workers& team, const HeadLossArgs<uniform_precision<T>>& a) {
    if (a.chunk < 1) throw error("head_loss: chunk must be at least 1; give scratch for the logits of one row or more");
    std::vector<double> losses(static_cast<std::size_t>(a.chunk));
    const auto stride = static_cast<int>(logit_stride(a.vocab));
    for (const row_range& range : live_ranges(a.rows))
        for (long long first = range.first; first < range.end(); first += a.chunk) {
            const int rows = static_cast<int>(std::min<long long>(a.chunk, range.end() - first));
            const operand<T> y{a.y + first * a.width, a.width};
            multiply(team, product<T>{rows, a.vocab, a.width, y, {a.weight, a.width, true}, a.logits, stride});

            // Softmax in place; where gradients are wanted the logits become scale (softmax - target).
            for_rows(team, {1, {rows}}, [&](long long row) {
                T* logits = a.logits + row * stride;
                const int target = a.targets[first + row];
                double& loss = losses[static_cast<std::size_t>(row)];
                loss = 0;
                if (target < 0) {
                    std::fill_n(logits, a.vocab, T{0});
                    return;
                }
                detail::check_token(target, a.vocab, "head_loss");
                const T top = detail::largest(logits, a.vocab), at_target = logits[target];
                const T sum = detail::exponentials(logits, top, a.vocab);
                loss = std::log(static_cast<double>(sum)) + static_cast<double>(top) - static_cast<double>(at_target);
                if (a.grad_y == nullptr) return;
                const T share = static_cast<T>(a.scale / static_cast<double>(sum));
                for (int c = 0; c < a.vocab; ++c) logits[c] *= share;
                logits[target] -= static_cast<T>(a.scale);
            });
            for (int row = 0; row < rows; ++row) *a.loss_sum += losses[static_cast<std::size_t>(row)];
            if (a.grad_y == nullptr) continue;
            multiply(team, product<T>{rows,
                                      a.width,
                                      a.vocab,
                                      {a.logits, stride},
                                      {a.weight, a.width},
                                      a.grad_y + first * a.width,
                                      a.width});
            multiply(
                team,
                product<T>{a.vocab, a.width, rows, {a.logits, stride, true}, y, a.grad_weight, a.width, T{1}, T{1}});
        }
}

}  // namespace sdepth::inline v0::on_host
