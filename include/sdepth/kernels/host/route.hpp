// SPDX-License-Identifier: MIT
// Sparse-depth routing: logits, selection, the gated residual, the routing loss. Rank 5.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

#include "sdepth/error.hpp"
#include "sdepth/kernels/host/parallel.hpp"
#include "sdepth/kernels/host/vector.hpp"
#include "sdepth/ops/route.hpp"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0::on_host {

/// See RouteLogitsArgs.
template <class T>
void route_logits(workers& team, const RouteLogitsArgs<uniform_precision<T>>& a) {
    for_rows(team, a.rows, [&](long long row) { a.logits[row] = detail::dot(a.weight, a.x + row * a.width, a.width); });
}

/// See RouteLogitsBackwardArgs.
template <class T>
void route_logits_backward(workers& team, const RouteLogitsBackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    for_rows_with_sums(team, a.rows, a.width, g.grad_weight, [&](long long row, T* grad_weight) {
        const T* x = a.x + row * a.width;
        for (int c = 0; c < a.width; ++c) grad_weight[c] += g.grad_logits[row] * x[c];
        if (g.grad_x == nullptr) return;
        T* grad_x = g.grad_x + row * a.width;
        for (int c = 0; c < a.width; ++c) grad_x[c] += g.grad_x_logits[row] * a.weight[c];
    });
}

namespace detail {

// Row of x that row `row` of a version is.
template <class Args>
long long version_place(const Args& a, long long row) {
    const long long start = row / a.rows.each.capacity * a.sequence;
    return start + (a.ids == nullptr ? row % a.rows.each.capacity : a.ids[row]);
}

}  // namespace detail

/// See RouteVersionLogitsArgs.
template <class T>
void route_version_logits(workers& team, const RouteVersionLogitsArgs<uniform_precision<T>>& a) {
    for_rows(team, a.rows, [&](long long row) {
        const long long at = detail::version_place(a, row);
        for (int j = a.first; j < a.layers; ++j)
            a.logits[j * a.logits_stride + at] = detail::dot(a.weight + j * a.stride, a.x + at * a.width, a.width);
    });
}

/// See RouteVersionBackwardArgs; one part of sums.
template <class T>
void route_version_backward(workers& team, const RouteVersionBackwardArgs<uniform_precision<T>>& a) {
    const auto place = [&](long long row) { return detail::version_place(a, row); };
    const long long all = static_cast<long long>(a.rows.batch) * a.sequence;
    for_rows_with_sums(team, a.rows, a.layers * a.width, a.sums, [&](long long row, T* sums) {
        const long long at = place(row);
        const T* x = a.x + at * a.width;
        T* grad_x = a.grad_x + at * a.width;
        for (int j = a.first; j < a.layers - a.later[at]; ++j) {
            const T g = a.grad_logits[j * all + at];
            const T* w = a.weight + j * a.stride;
            for (int c = 0; c < a.width; ++c) grad_x[c] += g * w[c];
            for (int c = 0; c < a.width; ++c) sums[j * a.width + c] += g * x[c];
        }
    });
    if (a.ids != nullptr) {
        for_rows(team, a.rows, [&](long long row) { a.later[place(row)] = a.layers - a.first; });
        return;
    }
    for (int j = 0; j < a.layers; ++j)
        for (int c = 0; c < a.width; ++c) a.grad_weight[j * a.grad_stride + c] += a.sums[j * a.width + c];
}

namespace detail {

// What one sequence adds to the tracked cut.
struct cut_share {
    double sum = 0;
    long long groups = 0;
};

// The k largest of v[first .. last), ties to the lower position: chosen[i] = 1. `order` is scratch.
template <class T>
cut_share choose_top(const T* v, int first, int last, long long k, std::vector<int>& order, std::vector<char>& chosen) {
    const int n = last - first;
    order.resize(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), first);
    if (k < n)
        std::nth_element(order.begin(), order.begin() + k, order.end(),
                         [v](int i, int j) { return v[i] != v[j] ? v[i] > v[j] : i < j; });
    for (long long j = 0; j < k; ++j) chosen[static_cast<std::size_t>(order[static_cast<std::size_t>(j)])] = 1;
    if (k >= n) return {};
    T last_in = v[order[0]], first_out = v[order[static_cast<std::size_t>(k)]];
    for (long long j = 0; j < k; ++j) last_in = std::min(last_in, v[order[static_cast<std::size_t>(j)]]);
    return {cut_between(static_cast<double>(last_in), static_cast<double>(first_out)), 1};
}

template <class T>
cut_share select_in_sequence(const SelectArgs<uniform_precision<T>>& a, int b) {
    const long long at = a.rows.first(b);
    const int n = a.rows.each.of(b);
    const T cut = a.cut == nullptr ? T{0} : *a.cut;
    std::vector<T> v(static_cast<std::size_t>(n));
    for (int i = 0; i < n; ++i) {
        T& value = v[static_cast<std::size_t>(i)];
        value = a.biased ? a.logits[at + i] - static_cast<T>(a.tau) * a.bias[at + i] : a.logits[at + i];
        if (!std::isfinite(value))
            throw error("select: the router logit of row " + std::to_string(i) + " of sequence " + std::to_string(b) +
                        " is not finite; find the first step with a non-finite loss and lower the learning rate");
        a.u[at + i] = value - cut;
    }

    std::vector<char> chosen(static_cast<std::size_t>(n), static_cast<char>(a.sparsity == 1));
    cut_share share;
    if (a.sparsity > 1 && a.rule == selection_rule::threshold)
        for (int i = 0; i < n; ++i) chosen[static_cast<std::size_t>(i)] = static_cast<char>(a.u[at + i] >= T{0});
    if (a.sparsity > 1 && a.rule == selection_rule::top) {
        std::vector<int> order;
        for (int first = 0, last = 0; first < n; first = last) {
            while (last < n && (a.documents == nullptr || a.documents[at + last] == a.documents[at + first])) ++last;
            const long long k = (last - first + a.sparsity - 1) / a.sparsity;
            const cut_share more = choose_top(v.data(), first, last, k, order, chosen);
            share.sum += more.sum;
            share.groups += more.groups;
        }
    }

    int live = 0;
    for (int i = 0; i < n; ++i) {
        if (chosen[static_cast<std::size_t>(i)] == 0) continue;
        if (live == a.capacity)
            throw error("select: sequence " + std::to_string(b) + " needs more than its " + std::to_string(a.capacity) +
                        " places; raise Run.max_documents");
        a.ids[std::ptrdiff_t{b} * a.capacity + live++] = i;
    }
    a.live[b] = live;
    return share;
}

}  // namespace detail

/// See SelectArgs. The cut's sums change under rule `top` only. Throws sdepth::error on a logit that is not finite and
/// where the chosen rows do not fit.
template <class T>
void select(workers& team, const SelectArgs<uniform_precision<T>>& a) {
    if (a.sparsity < 1) throw error("select: sparsity must be at least 1; 1 chooses every row");
    std::vector<detail::cut_share> shares(static_cast<std::size_t>(a.rows.batch));
    team.run(a.rows.batch, [&](int b) { shares[static_cast<std::size_t>(b)] = detail::select_in_sequence<T>(a, b); });
    for (const detail::cut_share& share : shares) {
        if (a.cut_sum != nullptr) *a.cut_sum += share.sum;
        if (a.cut_groups != nullptr) *a.cut_groups += share.groups;
    }
}

/// See VisibilityArgs.
inline void visibility(workers& team, const VisibilityArgs& a) {
    team.run(a.queries.batch, [&](int b) {
        const long long at = a.queries.first(b);
        const int* ids = a.ids + at;
        const int queries = a.queries.each.of(b);
        const int* documents = a.documents == nullptr ? nullptr : a.documents + std::ptrdiff_t{b} * a.sequence;
        for (int i = 0; i < a.queries.each.capacity; ++i) {
            a.first[at + i] = 0;
            a.last[at + i] = -1;
            if (i >= queries) continue;
            const int position = ids[i];
            if (a.key_positions != nullptr) {
                const int* keys = a.key_positions + a.keys.first(b);
                const int* end = keys + a.keys.each.of(b);
                const int from = a.window > 0 ? position - a.window + 1 : 0;
                a.first[at + i] = static_cast<int>(std::lower_bound(keys, end, from) - keys);
                a.last[at + i] = static_cast<int>(std::upper_bound(keys, end, position) - keys) - 1;
                continue;
            }
            int lowest = a.window > 0 ? std::max(0, position - a.window + 1) : 0;
            if (documents != nullptr)
                lowest = static_cast<int>(
                    std::lower_bound(documents + lowest, documents + position, documents[position]) - documents);
            a.first[at + i] = a.full_keys ? lowest : static_cast<int>(std::lower_bound(ids, ids + i, lowest) - ids);
            a.last[at + i] = a.full_keys ? position : i;
        }
    });
}

namespace detail {

// Row of x that chosen row `row` belongs to.
template <class Args>
long long residual_row(const Args& a, long long row) {
    return row / a.rows.each.capacity * a.sequence + a.ids[row];
}

// What the branches of one row are multiplied by.
template <class T>
struct residual_factors {
    T scale = 1, r = 1, a = 1, f = 1;

    residual_factors(const ScatterResidualArgs<uniform_precision<T>>& args, long long at) {
        if (args.gate != gate_form::none) r = sigmoid(args.gate_logits[at]);
        if (args.gate != gate_form::ffn && args.scale != nullptr) scale = *args.scale;
        if (args.gate == gate_form::ffn)
            f = r;
        else
            a = f = scale * r;
    }
};

}  // namespace detail

/// See ScatterResidualArgs.
template <class T>
void scatter_residual(workers& team, const ScatterResidualArgs<uniform_precision<T>>& args) {
    for_rows(team, args.rows, [&](long long row) {
        const long long at = detail::residual_row(args, row);
        const detail::residual_factors<T> by(args, at);
        T* x = args.x + at * args.width;
        if (args.a != nullptr)
            for (int c = 0; c < args.width; ++c) x[c] += by.a * args.a[row * args.width + c];
        if (args.f != nullptr)
            for (int c = 0; c < args.width; ++c) x[c] += by.f * args.f[row * args.width + c];
        if (args.bias != nullptr) args.bias[at] += static_cast<T>(args.increment);
    });
}

/// See ScatterResidualBackwardArgs.
template <class T>
void scatter_residual_backward(workers& team, const ScatterResidualBackwardArgs<uniform_precision<T>>& g) {
    const auto& args = g.forward;
    for_rows_with_sums(team, args.rows, 1, g.grad_scale, [&](long long row, T* grad_scale) {
        const long long at = detail::residual_row(args, row);
        const detail::residual_factors<T> by(args, at);
        const T* grad_x = g.grad_x + at * args.width;
        const auto along = [&](const T* branch) {
            return branch == nullptr ? T{0} : detail::dot(grad_x, branch + row * args.width, args.width);
        };
        const T on_a = along(args.a), on_f = along(args.f);
        const T gated = args.gate == gate_form::ffn ? on_f : by.scale * (on_a + on_f);
        if (args.gate != gate_form::none) g.grad_logits[at] += gated * by.r * (T{1} - by.r);
        if (grad_scale != nullptr) *grad_scale += by.r * (on_a + on_f);
        if (args.a != nullptr)
            for (int c = 0; c < args.width; ++c) g.grad_a[row * args.width + c] = by.a * grad_x[c];
        if (args.f != nullptr)
            for (int c = 0; c < args.width; ++c) g.grad_f[row * args.width + c] = by.f * grad_x[c];
        if (g.before != nullptr) std::copy_n(g.before + row * args.width, args.width, args.x + at * args.width);
    });
}

/// See RouteLossArgs.
template <class T>
void route_loss(workers& team, const RouteLossArgs<uniform_precision<T>>& a) {
    std::vector<double> losses(static_cast<std::size_t>(a.rows.batch));
    team.run(a.rows.batch, [&](int b) {
        const int* id = a.ids + a.chosen.first(b);
        const int* end = id + a.chosen.each.of(b);
        double& loss = losses[static_cast<std::size_t>(b)];
        for (int i = 0; i < a.rows.each.of(b); ++i) {
            const long long at = a.rows.first(b) + i;
            const bool chosen = id != end && *id == i;
            if (chosen) ++id;
            const double x = static_cast<double>(a.logits[at]);
            loss += std::max(x, 0.0) - (chosen ? x : 0.0) + std::log1p(std::exp(-std::abs(x)));
            if (a.grad_logits != nullptr)
                a.grad_logits[at] = static_cast<T>(a.scale * (detail::sigmoid(x) - (chosen ? 1.0 : 0.0)));
        }
    });
    for (const double loss : losses) *a.loss_sum += loss;
}

/// See TrackCutArgs.
template <class T>
void track_cut(const TrackCutArgs<uniform_precision<T>>& a) {
    if (a.finite != nullptr && *a.finite == 0) return;
    for (long long layer = 0; layer < a.layers; ++layer) {
        if (a.cut_groups[layer] == 0) continue;
        T& cut = a.cut[layer * a.stride];
        const T mean = static_cast<T>(a.cut_sum[layer] / static_cast<double>(a.cut_groups[layer]));
        cut += static_cast<T>(a.rate) * (mean - cut);
    }
}

}  // namespace sdepth::inline v0::on_host
