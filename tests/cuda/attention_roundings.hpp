// SPDX-License-Identifier: MIT
// How far bf16 storage may move each number of attention from the oracle's. No CUDA here.
//
// The kernels round P and dS to bf16 before they multiply by them. Each rounding is spread evenly over at most -u .. u
// of the number, u = 2^-8, on its own. A result sum_j w_j x_j is then off by e = sum_j d_j x_j with the variance s^2 =
// sum_j (u w_j x_j)^2 / 3 or less. Sums of even spreads have tails no heavier than a normal number's (they are strictly
// sub-Gaussian): |e| > z s has a probability of at most 2 exp(-z^2 / 2), for z = 8 3e-14 a number and 1e-5 for all 3e8
// numbers of a run of these tests. The result is rounded in its turn, by up to u of itself. The mean square of errors
// over their variances is 1 or less, 0.54 where mantissas are spread as those of numbers of no particular size.
//
// What is computed in fp32 matters only where dP - D cancels; portable kernels hand P over in fp16.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

#include "attention.hpp"
#include "numbers.hpp"
#include "support/tolerance.hpp"

namespace sdepth_test {

inline constexpr double bf16_rounding = 0x1p-8;

/// A sum of products, and the root of the sum of their squares.
struct product_sum {
    double sum = 0, norm = 0;
    product_sum(const double* x, const double* y, int n) {
        for (int c = 0; c < n; ++c) sum += x[c] * y[c], norm += x[c] * x[c] * y[c] * y[c];
        norm = std::sqrt(norm);
    }
};

/// How far the roundings of P and of scale dS may be off for one query and one key, of h numbers each. The lse may be a
/// joint one; `drop` is D.
struct pair_roundings {
    double p, ds;
    product_sum logit;
    pair_roundings(const double* q, const double* k, const double* v, const double* grad_o, int h, double scale,
                   double lse, const product_sum& drop)
        : logit(q, k, h) {
        const product_sum dp(grad_o, v, h);
        const double weight = std::exp(scale * logit.sum - lse), slope = std::abs(dp.sum - drop.sum);
        p = bf16_rounding * weight;
        ds = scale * ((bf16_rounding + 0x1p-11) * weight * slope + 0x1p-25 * slope +
                      tolerance<float>(h, 2) * weight * (dp.norm + drop.norm));
    }
};
/// Adds the variance of w x, n numbers, where w is off by up to `width`.
inline void add_variance(double* to, double width, const double* x, int n) {
    for (int c = 0; c < n; ++c) to[c] += width * width / 3 * x[c] * x[c];
}

/// Bound of lse's error: logits that are sums of up to `terms` products, their norm at most `logits`, and a sum of as
/// many exponentials.
inline double lse_bound(double lse, double logits, double terms) {
    return tolerance<float>(terms, 8) * (1 + std::abs(lse) + logits);
}

/// s^2 of each number, for lse a bound of the error itself; `a` has inputs, o and lse, and gives the sizes.
inline attention_outputs attention_roundings(const sdepth::AttentionArgs<double>& a, const double* grad_o) {
    const int h = a.head_dim, queries = a.queries.capacity, keys = a.keys.capacity;
    const auto zeros = [&](int rows, int stride) { return std::vector<double>(count(a.batch, rows, stride)); };
    attention_outputs s{zeros(queries, a.heads * h), zeros(queries, a.heads), zeros(queries, a.q_stride()),
                        zeros(keys, a.kv_stride()), zeros(keys, a.kv_stride())};
    for (int b = 0; b < a.batch; ++b)
        for (int i = 0; i < queries; ++i) {
            const std::size_t sequence = count(b, queries, 1), row = sequence + count(1, i, 1);
            const int* const first = a.first == nullptr ? nullptr : a.first + sequence;
            const int* const last = a.last == nullptr ? nullptr : a.last + sequence;
            const sdepth::key_range see =
                sdepth::visible_keys(i, a.queries.of(b), a.keys.of(b), a.causal, a.window, first, last);
            for (int head = 0; head < a.heads; ++head) {
                const std::size_t at_q = row * count(1, 1, a.q_stride()) + count(1, head, h);
                const std::size_t at_lse = row * count(1, 1, a.heads) + count(1, head, 1),
                                  at_o = at_lse * count(1, 1, h);
                const double *const q = a.q + at_q, *const dy = grad_o + at_o;
                const product_sum drop(a.o + at_o, dy, h);
                double logits = 0;
                for (int j = see.first; j <= see.last; ++j) {
                    const std::size_t at_k = (count(b, keys, 1) + count(1, j, 1)) * count(1, 1, a.kv_stride()) +
                                             count(1, head / (a.heads / a.kv_heads), h);
                    const pair_roundings off(q, a.k + at_k, a.v + at_k, dy, h, a.scale, a.lse[at_lse], drop);
                    add_variance(&s.o[at_o], off.p, a.v + at_k, h), add_variance(&s.grad_v[at_k], off.p, dy, h);
                    add_variance(&s.grad_q[at_q], off.ds, a.k + at_k, h), add_variance(&s.grad_k[at_k], off.ds, q, h);
                    logits = std::max(logits, a.scale * off.logit.norm);
                }
                if (see.first <= see.last) s.lse[at_lse] = lse_bound(a.lse[at_lse], logits, std::max(h, keys));
            }
        }
    return s;
}

/// Root mean square of errors over their deviations, and the largest error over its bound: both at most 1. NaN if NaN
/// is not where it is to be. A row's numbers share roundings, so that the mean of fewer than a hundred rows of a head
/// may be anything: 0 then. `u`: of the rounding to the type of the results.
inline error_size compare_rounded(const std::vector<double>& got, const std::vector<double>& want,
                                  const std::vector<double>& variances, double u = bf16_rounding) {
    constexpr double z = 8;
    double worst = 0, sum = 0, numbers = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        if (std::isnan(want[i]) != std::isnan(got[i])) return {nan, nan};
        const double own = u * want[i], variance = own * own / 3 + variances[i], error = std::abs(got[i] - want[i]);
        if (std::isnan(want[i]) || (variance == 0 && error == 0)) continue;
        const double off = z * std::sqrt(variances[i]);
        worst = std::max(worst, error / (off + u * (std::abs(want[i]) + off)));
        sum += error * error / variance, ++numbers;
    }
    return {numbers < 1e4 ? 0 : std::sqrt(sum / numbers), worst};
}
inline bool within(const error_size& e) { return e.rms <= 1 && e.max <= 1; }
inline void check_roundings(const char* what, const std::vector<double>& got, const std::vector<double>& want,
                            const std::vector<double>& variances, double u = bf16_rounding) {
    const error_size e = compare_rounded(got, want, variances, u);
    INFO(what << ": rms " << e.rms << " of the deviation, largest " << e.max << " of the bound");
    CHECK(within(e));
}

/// Each error within its bound; equal infinities are no error.
inline void check_within(const char* what, const std::vector<double>& got, const std::vector<double>& want,
                         const std::vector<double>& bound) {
    double worst = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        if (got[i] == want[i]) continue;
        const double share = std::abs(got[i] - want[i]) / bound[i];
        if (!(share <= worst)) worst = std::isnan(share) ? std::numeric_limits<double>::infinity() : share;
    }
    INFO(what << ": largest " << worst << " of the bound");
    CHECK(worst <= 1);
}

}  // namespace sdepth_test
