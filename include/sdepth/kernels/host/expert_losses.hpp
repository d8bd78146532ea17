// SPDX-License-Identifier: MIT
// Balance losses and z-loss of expert routers, with their gradients. Rank 5.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numbers>
#include <numeric>
#include <vector>

#include "sdepth/kernels/host/experts.hpp"

namespace sdepth::inline v0::on_host {

namespace detail {

/// What every loss reads of the rows, in double.
struct router_view {
    std::vector<double> q;                 // [N, E], score normalised over all experts
    std::vector<double> p;                 // [N, E], softmax
    std::vector<double> log_sum, entropy;  // [N]; logsumexp of the logits, entropy of q
};

template <class T>
router_view view_router(workers& team, const ExpertLossArgs<uniform_precision<T>>& a) {
    const auto rows = static_cast<std::size_t>(a.rows.capacity()), all = rows * static_cast<std::size_t>(a.experts);
    router_view view{std::vector<double>(all), std::vector<double>(all), std::vector<double>(rows),
                     std::vector<double>(rows)};
    for_rows(team, a.rows, [&](long long row) {
        const std::ptrdiff_t at = row * a.experts;
        double *p = view.p.data() + at, *q = view.q.data() + at;
        std::copy_n(a.logits + at, a.experts, p);
        const double top = largest(p, a.experts), total = exponentials(p, top, a.experts);
        for (int e = 0; e < a.experts; ++e) p[e] /= total;
        view.log_sum[static_cast<std::size_t>(row)] = top + std::log(total);
        std::copy_n(p, a.experts, q);
        if (a.score == expert_score::sigmoid) {
            for (int e = 0; e < a.experts; ++e) q[e] = sigmoid(static_cast<double>(a.logits[at + e]));
            const double sum = std::accumulate(q, q + a.experts, 0.0);
            for (int e = 0; e < a.experts; ++e) q[e] /= sum;
        }
        double entropy = 0;
        for (int e = 0; e < a.experts; ++e) entropy -= q[e] > 0 ? q[e] * std::log(q[e]) : 0;
        view.entropy[static_cast<std::size_t>(row)] = entropy;
    });
    return view;
}

/// Value of a balance loss, and its slope in q: the same for all rows of a sequence, [B, E].
struct balance_value {
    double value = 0;
    std::vector<double> slope;
};

template <class T>
balance_value share_loss(const ExpertLossArgs<uniform_precision<T>>& a, const router_view& view, double rows) {
    const auto experts = static_cast<std::size_t>(a.experts);
    balance_value out{0, std::vector<double>(static_cast<std::size_t>(a.rows.batch) * experts, 0)};
    const bool apart = a.loss == balance::per_sequence;
    std::vector<double> q(experts, 0), f(experts, 0);
    // Adds the group that ends with sequence b: value and slopes of its sequences, weighted by its share of the rows.
    const auto close = [&](int first, int last) {
        const double choices = std::accumulate(f.begin(), f.end(), 0.0);
        for (std::size_t e = 0; e < experts && choices > 0; ++e) {
            const double by = static_cast<double>(a.experts) * f[e] / choices / rows;
            out.value += by * q[e];
            for (int b = first; b <= last; ++b) out.slope[static_cast<std::size_t>(b) * experts + e] = by;
        }
        std::fill(q.begin(), q.end(), 0), std::fill(f.begin(), f.end(), 0);
    };
    for (int b = 0; b < a.rows.batch; ++b) {
        for (int i = 0; i < a.rows.each.of(b); ++i) {
            const double* own = view.q.data() + (a.rows.first(b) + i) * a.experts;
            for (std::size_t e = 0; e < experts; ++e) q[e] += own[e];
            if (a.loss == balance::top_one) ++f[static_cast<std::size_t>(std::max_element(own, own + experts) - own)];
        }
        if (a.loss != balance::top_one)
            for (std::size_t e = 0; e < experts; ++e) f[e] += a.wanted[static_cast<std::size_t>(b) * experts + e];
        if (apart) close(b, b);
    }
    if (!apart) close(0, a.rows.batch - 1);
    return out;
}

/// Squared coefficient of variation and its slopes.
inline double variation(const std::vector<double>& x, std::vector<double>& slope) {
    const auto n = static_cast<double>(x.size());
    const double mean = std::accumulate(x.begin(), x.end(), 0.0) / n;
    const double square = std::inner_product(x.begin(), x.end(), x.begin(), 0.0) / n;
    slope.assign(x.size(), 0);
    if (mean == 0) return 0;
    for (std::size_t e = 0; e < x.size(); ++e) slope[e] = 2 * (x[e] - square / mean) / (n * mean * mean);
    return square / (mean * mean) - 1;
}

/// One row's chance of being chosen by each expert when its noise is drawn again, the rest held.
template <class T>
struct load_of_row {
    std::vector<int> threshold;     // expert whose noisy logit is the mark to reach
    std::vector<double> at, width;  // distance to the mark over the noise's width; the width

    load_of_row(const ExpertLossArgs<uniform_precision<T>>& a, long long row) {
        const T* noisy = a.logits + row * a.experts;
        std::vector<int> order(static_cast<std::size_t>(a.experts));
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(),
                  [&](int i, int j) { return noisy[i] != noisy[j] ? noisy[i] > noisy[j] : i < j; });
        threshold.assign(order.size(), order[static_cast<std::size_t>(a.each - 1)]);
        for (int j = 0; j < a.each; ++j)
            threshold[static_cast<std::size_t>(order[static_cast<std::size_t>(j)])] =
                order[static_cast<std::size_t>(a.each)];
        for (int e = 0; e < a.experts; ++e) {
            const long long here = row * a.experts + e;
            width.push_back(softplus(static_cast<double>(a.spread[here])));
            at.push_back((static_cast<double>(a.clean[here]) -
                          static_cast<double>(noisy[threshold[static_cast<std::size_t>(e)]])) /
                         width.back());
        }
    }
    double chance(std::size_t e) const { return 0.5 * std::erfc(-at[e] / std::numbers::sqrt2); }
    double density(std::size_t e) const {
        return std::exp(-0.5 * at[e] * at[e]) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
    }
};

template <class T>
double importance_and_load(const ExpertLossArgs<uniform_precision<T>>& a, const std::vector<long long>& rows) {
    const auto experts = static_cast<std::size_t>(a.experts);
    std::vector<double> importance(experts, 0), load(experts, 0), to_importance, to_load;
    const bool drawn = a.clean != nullptr && a.each < a.experts;
    for (const long long row : rows) {
        for (long long at = row * a.ways; at < (row + 1) * a.ways; ++at)
            if (a.chosen[at] >= 0)
                importance[static_cast<std::size_t>(a.chosen[at])] += static_cast<double>(a.weights[at]);
        if (!drawn) continue;
        const load_of_row<T> own(a, row);
        for (std::size_t e = 0; e < experts; ++e) load[e] += own.chance(e);
    }
    if (!drawn)
        for (int b = 0; b < a.rows.batch; ++b)
            for (std::size_t e = 0; e < experts; ++e) load[e] += a.wanted[static_cast<std::size_t>(b) * experts + e];
    const double value = variation(importance, to_importance) + variation(load, to_load);
    if (a.grad_logits == nullptr) return value;
    for (const long long row : rows) {
        for (long long at = row * a.ways; at < (row + 1) * a.ways; ++at)
            if (a.chosen[at] >= 0)
                a.grad_weights[at] +=
                    static_cast<T>(a.balance_scale * to_importance[static_cast<std::size_t>(a.chosen[at])]);
        if (!drawn) continue;
        const load_of_row<T> own(a, row);
        for (std::size_t e = 0; e < experts; ++e) {
            const double slope = a.balance_scale * to_load[e] * own.density(e) / own.width[e];
            const auto here = static_cast<std::size_t>(row) * experts;
            a.grad_clean[here + e] += static_cast<T>(slope);
            a.grad_logits[here + static_cast<std::size_t>(own.threshold[e])] -= static_cast<T>(slope);
            a.grad_spread[here + e] -=
                static_cast<T>(slope * own.at[e] * sigmoid(static_cast<double>(a.spread[here + e])));
        }
    }
    return value;
}

}  // namespace detail

/// See ExpertLossArgs.
template <class T>
void expert_losses(workers& team, const ExpertLossArgs<uniform_precision<T>>& a) {
    const std::vector<long long> all = detail::live_rows(a.rows);
    if (all.empty()) return;
    const auto rows = static_cast<double>(all.size());
    const detail::router_view view = detail::view_router<T>(team, a);
    detail::balance_value shares;
    const bool by_share = a.loss != balance::none && a.loss != balance::importance_load;
    if (by_share) shares = detail::share_loss<T>(a, view, rows);
    if (a.grad_logits != nullptr) {
        for_rows(team, a.rows, [&](long long row) {
            const long long at = row * a.experts;
            const double *q = view.q.data() + at, *p = view.p.data() + at;
            const double* slope = by_share ? shares.slope.data() + row / a.rows.each.capacity * a.experts : nullptr;
            double mean = 0;
            for (int e = 0; e < a.experts && by_share; ++e) mean += slope[e] * q[e];
            const double z = a.z_scale * 2 * view.log_sum[static_cast<std::size_t>(row)] / rows;
            for (int e = 0; e < a.experts; ++e) {
                double grad = z * p[e];
                if (by_share) {
                    const double s = a.score == expert_score::sigmoid
                                         ? 1 - detail::sigmoid(static_cast<double>(a.logits[at + e]))
                                         : 1;
                    grad += a.balance_scale * q[e] * s * (slope[e] - mean);
                }
                a.grad_logits[at + e] = static_cast<T>(grad);
                if (a.grad_clean != nullptr) a.grad_clean[at + e] = a.grad_spread[at + e] = T{0};
            }
        });
    }
    double balance_value = shares.value;
    if (a.loss == balance::importance_load) balance_value = detail::importance_and_load<T>(a, all);
    if (a.sums == nullptr) return;
    double z = 0, entropy = 0;
    for (const long long row : all) {
        const double l = view.log_sum[static_cast<std::size_t>(row)];
        z += l * l;
        entropy += view.entropy[static_cast<std::size_t>(row)];
    }
    a.sums[0] += a.by * balance_value;
    a.sums[1] += a.by * z / rows;
    a.sums[2] += entropy;
}

}  // namespace sdepth::inline v0::on_host
