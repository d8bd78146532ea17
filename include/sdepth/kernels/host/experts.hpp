// SPDX-License-Identifier: MIT
// The router of expert layers: logits, noise, choice, weights, steering. Rank 5.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "sdepth/error.hpp"
#include "sdepth/kernels/host/assignment.hpp"
#include "sdepth/kernels/host/gemm.hpp"
#include "sdepth/kernels/host/grouped.hpp"
#include "sdepth/kernels/host/parallel.hpp"
#include "sdepth/kernels/host/vector.hpp"
#include "sdepth/ops/experts.hpp"
#include "sdepth/precision.hpp"
#include "sdepth/random.hpp"

namespace sdepth::inline v0::on_host {

/// See ExpertLogitsArgs.
template <class T>
void expert_logits(workers& team, const ExpertLogitsArgs<uniform_precision<T>>& a) {
    for_rows(team, a.rows, [&](long long row) {
        for (int e = 0; e < a.experts; ++e)
            a.logits[row * a.experts + e] =
                detail::dot(a.weight + std::ptrdiff_t{e} * a.width, a.x + row * a.width, a.width);
    });
}

/// See ExpertLogitsBackwardArgs.
template <class T>
void expert_logits_backward(workers& team, const ExpertLogitsBackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    for (const row_range& range : live_ranges(a.rows)) {
        const T* grad = g.grad_logits + range.first * a.experts;
        product<T> m{static_cast<int>(range.count), a.width, a.experts};
        m.a = {grad, a.experts};
        m.b = {a.weight, a.width};
        m.c = g.grad_x + range.first * a.width;
        m.stride = a.width;
        m.beta = T{1};
        multiply(team, m);
        product<T> w{a.experts, a.width, static_cast<int>(range.count)};
        w.a = {grad, a.experts, true};
        w.b = {a.x + range.first * a.width, a.width};
        w.c = g.grad_weight;
        w.stride = a.width;
        w.beta = T{1};
        multiply(team, w);
    }
}

namespace detail {

// The normal number of expert e in a row.
template <class Args>
double noise_of(const Args& a, long long row, int e) {
    const auto token = a.first + static_cast<std::uint64_t>(row / a.rows.each.capacity * a.sequence + a.ids[row]);
    return random_normal(a.seed, random_use::routing, a.layer,
                         token * static_cast<std::uint64_t>(a.experts) + static_cast<std::uint64_t>(e));
}

}  // namespace detail

/// See ExpertNoiseArgs.
template <class T>
void expert_noise(workers& team, const ExpertNoiseArgs<uniform_precision<T>>& a) {
    for_rows(team, a.rows, [&](long long row) {
        for (int e = 0; e < a.experts; ++e) {
            const long long at = row * a.experts + e;
            a.noisy[at] = a.logits[at] + detail::softplus(a.spread[at]) * static_cast<T>(detail::noise_of(a, row, e));
        }
    });
}

/// See ExpertNoiseBackwardArgs.
template <class T>
void expert_noise_backward(workers& team, const ExpertNoiseBackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    for_rows(team, a.rows, [&](long long row) {
        for (int e = 0; e < a.experts; ++e) {
            const long long at = row * a.experts + e;
            g.grad_logits[at] += g.grad_noisy[at];
            g.grad_spread[at] +=
                g.grad_noisy[at] * static_cast<T>(detail::noise_of(a, row, e)) * detail::sigmoid(a.spread[at]);
        }
    });
}

namespace detail {

/// The score over all experts of one row: softmax, or sigmoids.
template <class T>
void score_row(expert_score score, const T* logits, int experts, T* out) {
    if (score == expert_score::sigmoid) {
        for (int e = 0; e < experts; ++e) out[e] = sigmoid(logits[e]);
        return;
    }
    std::copy_n(logits, experts, out);
    const T total = exponentials(out, largest(out, experts), experts);
    for (int e = 0; e < experts; ++e) out[e] /= total;
}

template <class T>
void choose_by_token(workers& team, const ChooseExpertsArgs<uniform_precision<T>>& a) {
    for_rows(team, a.rows, [&](long long row) {
        std::vector<T> key(a.logits + row * a.experts, a.logits + (row + 1) * a.experts);
        if (a.bias != nullptr) {
            score_row(a.score, a.logits + row * a.experts, a.experts, key.data());
            for (int e = 0; e < a.experts; ++e) key[static_cast<std::size_t>(e)] += a.bias[e];
        }
        std::vector<int> order(key.size());
        std::iota(order.begin(), order.end(), 0);
        std::partial_sort(order.begin(), order.begin() + a.each, order.end(), [&](int i, int j) {
            const T left = key[static_cast<std::size_t>(i)], right = key[static_cast<std::size_t>(j)];
            return left != right ? left > right : i < j;
        });
        std::copy_n(order.begin(), a.each, a.chosen + row * a.ways);
    });
}

template <class T>
void choose_by_expert(workers& team, const ChooseExpertsArgs<uniform_precision<T>>& a) {
    const std::vector<long long> rows = live_rows(a.rows);
    std::vector<T> scores(static_cast<std::size_t>(a.rows.capacity() * a.experts));
    for_rows(team, a.rows, [&](long long row) {
        score_row(a.score, a.logits + row * a.experts, a.experts, scores.data() + row * a.experts);
    });
    const auto most =
        std::min<long long>(expert_capacity(a.capacity, a.each, std::ssize(rows), a.experts), std::ssize(rows));
    std::vector<int> taken(static_cast<std::size_t>(a.rows.capacity()), 0);
    for (int e = 0; e < a.experts; ++e) {
        std::vector<long long> order = rows;
        const auto score = [&](long long row) { return scores[static_cast<std::size_t>(row * a.experts + e)]; };
        std::partial_sort(order.begin(), order.begin() + most, order.end(),
                          [&](long long i, long long j) { return score(i) != score(j) ? score(i) > score(j) : i < j; });
        for (long long i = 0; i < most; ++i) {
            const long long row = order[static_cast<std::size_t>(i)];
            a.chosen[row * a.ways + taken[static_cast<std::size_t>(row)]++] = e;
        }
    }
}

template <class T>
void choose_balanced(const ChooseExpertsArgs<uniform_precision<T>>& a) {
    const std::vector<long long> rows = live_rows(a.rows);
    const long long most = expert_capacity(1, a.each, std::ssize(rows), a.experts);
    const std::vector<int> experts =
        balanced_assignment(static_cast<int>(rows.size()), a.experts, a.each, most, [&](int row, int e) {
            return static_cast<double>(a.logits[rows[static_cast<std::size_t>(row)] * a.experts + e]);
        });
    for (std::size_t i = 0; i < rows.size(); ++i)
        std::copy_n(experts.begin() + static_cast<std::ptrdiff_t>(i) * a.each, a.each, a.chosen + rows[i] * a.ways);
}

}  // namespace detail

/// See ChooseExpertsArgs.
template <class T>
void choose_experts(workers& team, const ChooseExpertsArgs<uniform_precision<T>>& a) {
    for_rows(team, a.rows, [&](long long row) {
        std::fill_n(a.chosen + row * a.ways, a.ways, -1);
        for (int e = 0; e < a.experts; ++e)
            if (!std::isfinite(a.logits[row * a.experts + e]))
                throw error("choose_experts: a router logit of row " + std::to_string(row) +
                            " is not finite; find the first step with a non-finite loss and lower the learning rate");
    });
    if (a.choice == expert_choice::by_token) detail::choose_by_token<T>(team, a);
    if (a.choice == expert_choice::by_expert) detail::choose_by_expert<T>(team, a);
    if (a.choice == expert_choice::balanced) detail::choose_balanced<T>(a);
    std::fill_n(a.wanted, std::ptrdiff_t{a.rows.batch} * a.experts, 0);
    for (int b = 0; b < a.rows.batch; ++b)
        for (long long at = a.rows.first(b) * a.ways; at < (a.rows.first(b) + a.rows.each.of(b)) * a.ways; ++at)
            if (a.chosen[at] >= 0) ++a.wanted[b * a.experts + a.chosen[at]];
}

namespace detail {

// Scores of the ways of one row, 0 where there is no choice: softmax over the chosen, or the score over all.
template <class T>
void scores_of_ways(const ExpertWeightsArgs<uniform_precision<T>>& a, const T* logits, const int* chosen, bool among,
                    const std::vector<T>& all, T* out) {
    std::fill_n(out, a.ways, T{0});
    if (!among) {
        for (int way = 0; way < a.ways; ++way)
            if (chosen[way] >= 0) out[way] = all[static_cast<std::size_t>(chosen[way])];
        return;
    }
    const int* first = std::find_if(chosen, chosen + a.ways, [](int e) { return e >= 0; });
    if (first == chosen + a.ways) return;
    T top = logits[*first], total{0};
    for (int way = 0; way < a.ways; ++way)
        if (chosen[way] >= 0) top = std::max(top, logits[chosen[way]]);
    for (int way = 0; way < a.ways; ++way)
        if (chosen[way] >= 0) total += out[way] = std::exp(logits[chosen[way]] - top);
    for (int way = 0; way < a.ways; ++way) out[way] /= total;
}

template <class Args>
bool scores_chosen_only(const Args& a) {
    return a.score == expert_score::softmax && a.order == score_order::choose_then_score;
}

}  // namespace detail

/// See ExpertWeightsArgs.
template <class T>
void expert_weights(workers& team, const ExpertWeightsArgs<uniform_precision<T>>& a) {
    const bool among = detail::scores_chosen_only(a);
    for_rows(team, a.rows, [&](long long row) {
        const T* logits = a.logits + row * a.experts;
        T* weights = a.weights + row * a.ways;
        std::vector<T> all(static_cast<std::size_t>(a.experts));
        if (!among) detail::score_row(a.score, logits, a.experts, all.data());
        detail::scores_of_ways<T>(a, logits, a.chosen + row * a.ways, among, all, weights);
        const T total = a.renormalise && !among ? std::accumulate(weights, weights + a.ways, T{0}) : T{1};
        for (int way = 0; way < a.ways; ++way) weights[way] *= static_cast<T>(a.scale) / (total > T{0} ? total : T{1});
    });
}

/// See ExpertWeightsBackwardArgs.
template <class T>
void expert_weights_backward(workers& team, const ExpertWeightsBackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    const bool among = detail::scores_chosen_only(a);
    for_rows(team, a.rows, [&](long long row) {
        const T* logits = a.logits + row * a.experts;
        const int* chosen = a.chosen + row * a.ways;
        T* grad = g.grad_logits + row * a.experts;
        std::vector<T> all(static_cast<std::size_t>(a.experts)), score(static_cast<std::size_t>(a.ways));
        if (!among) detail::score_row(a.score, logits, a.experts, all.data());
        detail::scores_of_ways<T>(a, logits, chosen, among, all, score.data());
        // From weights to scores: a quotient where they are renormalised. `mean` is the gradient's mean over the
        // weights.
        const T sum = std::accumulate(score.begin(), score.end(), T{0});
        const T total = a.renormalise && !among && sum > T{0} ? sum : T{1};
        const auto scaled = [&](int way) { return static_cast<T>(a.scale) * g.grad_weights[row * a.ways + way]; };
        T mean{0};
        if (among || a.renormalise)
            for (int way = 0; way < a.ways; ++way) {
                const T weight = score[static_cast<std::size_t>(way)] / total;
                if (weight > T{0}) mean += scaled(way) * weight;
            }
        T along{0};  // softmax over all: what every logit loses
        for (int way = 0; way < a.ways; ++way) {
            if (chosen[way] < 0) continue;
            const T s = score[static_cast<std::size_t>(way)], on_score = (scaled(way) - mean) / total;
            grad[chosen[way]] += a.score == expert_score::sigmoid ? on_score * s * (T{1} - s) : on_score * s;
            along += on_score * s;
        }
        if (a.score == expert_score::softmax && !among)
            for (int e = 0; e < a.experts; ++e) grad[e] -= along * all[static_cast<std::size_t>(e)];
    });
}

/// See SteerExpertsArgs.
template <class T>
void steer_experts(const SteerExpertsArgs<uniform_precision<T>>& a) {
    if (a.finite != nullptr && *a.finite == 0) return;
    for (long long layer = 0; layer < a.layers; ++layer) {
        const long long* load = a.load + layer * a.experts;
        const long long total = std::accumulate(load, load + a.experts, 0LL);
        for (int e = 0; e < a.experts; ++e) {
            const long long less = total - load[e] * a.experts;  // E (mean - load), exactly
            a.bias[layer * a.stride + e] += static_cast<T>(a.step) * static_cast<T>((less > 0) - (less < 0));
        }
    }
}

}  // namespace sdepth::inline v0::on_host
