// SPDX-License-Identifier: MIT
// Rows grouped by expert: slots, products per expert, combination. Every sum has a fixed order. Rank 5.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sdepth/kernels/host/gemm.hpp"
#include "sdepth/kernels/host/parallel.hpp"
#include "sdepth/kernels/host/vector.hpp"
#include "sdepth/ops/experts.hpp"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0::on_host {

namespace detail {

/// Numbers of the live rows, rising.
inline std::vector<long long> live_rows(const batch_rows& rows) {
    std::vector<long long> all;
    for (const row_range& range : live_ranges(rows))
        for (long long row = range.first; row < range.end(); ++row) all.push_back(row);
    return all;
}

// Applies the limit: `chosen` with -1 for dropped assignments (returned), rerouted ones changed in place.
template <class T>
std::vector<int> within_capacity(const GroupExpertsArgs<uniform_precision<T>>& a, const std::vector<long long>& rows) {
    std::vector<int> kept(a.chosen, a.chosen + a.rows.capacity() * a.ways);
    if (a.capacity <= 0) return kept;
    const long long most = expert_capacity(a.capacity, a.each, static_cast<long long>(rows.size()), a.experts);
    std::vector<long long> taken(static_cast<std::size_t>(a.experts), 0);
    long long dropped = 0, moved = 0;
    std::vector<long long> excess;
    for (int way = 0; way < a.ways; ++way)
        for (const long long row : rows) {
            const long long at = row * a.ways + way;
            if (a.chosen[at] < 0) continue;
            if (++taken[static_cast<std::size_t>(a.chosen[at])] > most) excess.push_back(at);
        }
    if (a.excess == overflow::defer) moved = static_cast<long long>(excess.size());
    if (a.excess != overflow::defer)
        for (const long long at : excess) kept[static_cast<std::size_t>(at)] = -1;
    if (a.excess == overflow::skip) dropped = static_cast<long long>(excess.size());
    if (a.excess == overflow::reroute) {
        for (const long long at : excess) {
            const long long row = at / a.ways;
            const int* own = a.chosen + row * a.ways;
            int best = -1;
            for (int e = 0; e < a.experts; ++e) {
                if (taken[static_cast<std::size_t>(e)] >= most || std::find(own, own + a.ways, e) != own + a.ways)
                    continue;
                if (best < 0 || a.logits[row * a.experts + e] > a.logits[row * a.experts + best]) best = e;
            }
            kept[static_cast<std::size_t>(at)] = best;
            if (best < 0) {
                ++dropped;
                continue;
            }
            a.chosen[at] = best;
            ++taken[static_cast<std::size_t>(best)];
            ++moved;
        }
    }
    if (a.counts != nullptr) a.counts[1] += dropped, a.counts[2] += moved;
    return kept;
}

/// A strip of one expert's slots, or of its outputs.
struct expert_strip {
    int expert = 0;
    row_range range;
};

template <class Length>
std::vector<expert_strip> expert_strips(int experts, int size, const Length& length) {
    std::vector<expert_strip> strips;
    for (int e = 0; e < experts; ++e) {
        const row_range all = length(e);
        for (long long first = all.first; first < all.end(); first += size)
            strips.push_back({e, {first, std::min<long long>(size, all.end() - first)}});
    }
    return strips;
}

}  // namespace detail

/// See GroupExpertsArgs.
template <class T>
void group_experts(const GroupExpertsArgs<uniform_precision<T>>& a) {
    const std::vector<long long> rows = detail::live_rows(a.rows);
    const std::vector<int> kept = detail::within_capacity<T>(a, rows);
    std::fill_n(a.offsets, a.experts + 1, 0);
    for (const long long row : rows)
        for (int way = 0; way < a.ways; ++way)
            if (const int e = kept[static_cast<std::size_t>(row * a.ways + way)]; e >= 0) ++a.offsets[e + 1];
    for (int e = 0; e < a.experts; ++e) a.offsets[e + 1] += a.offsets[e];
    std::vector<int> next(a.offsets, a.offsets + a.experts);
    for (const long long row : rows)
        for (int way = 0; way < a.ways; ++way) {
            const long long at = row * a.ways + way;
            const int e = kept[static_cast<std::size_t>(at)];
            a.slot[at] = e < 0 ? -1 : next[static_cast<std::size_t>(e)]++;
            if (e >= 0) a.assignment[a.slot[at]] = static_cast<int>(at);
        }
    if (a.counts != nullptr) a.counts[0] += static_cast<long long>(rows.size());
    if (a.load == nullptr) return;
    for (int b = 0; b < a.rows.batch; ++b)
        for (int e = 0; e < a.experts; ++e) a.load[e] += a.wanted[b * a.experts + e];
}

/// See GatherSlotsArgs.
template <class T>
void gather_slots(workers& team, const GatherSlotsArgs<uniform_precision<T>>& a) {
    for_rows(team, a.slots, [&](long long slot) {
        std::copy_n(a.x + std::ptrdiff_t{a.assignment[slot] / a.ways} * a.width, a.width, a.out + slot * a.width);
    });
}

/// See CombineSlotsArgs.
template <class T>
void combine_slots(workers& team, const CombineSlotsArgs<uniform_precision<T>>& a) {
    for_rows(team, a.rows, [&](long long row) {
        T* sum = a.sum + row * a.width;
        if (!a.adds) std::fill_n(sum, a.width, T{0});
        for (int way = 0; way < a.ways; ++way) {
            const int slot = a.slot[row * a.ways + way];
            if (slot < 0) continue;
            const T* y = a.y + std::ptrdiff_t{slot} * a.width;
            for (int c = 0; c < a.width; ++c) sum[c] += y[c];
        }
    });
}

/// See GroupedLinearArgs.
template <class T>
void grouped_linear(workers& team, const GroupedLinearArgs<uniform_precision<T>>& a) {
    const auto strips = detail::expert_strips(a.experts, 128, [&](int e) {
        return row_range{a.offsets[e], a.offsets[e + 1] - a.offsets[e]};
    });
    team.run(static_cast<int>(strips.size()), [&](int task) {
        const auto [e, slots] = strips[static_cast<std::size_t>(task)];
        product<T> m{static_cast<int>(slots.count), a.outputs, a.inputs};
        m.a = {a.x + slots.first * a.inputs, a.inputs};
        m.b = {a.weight + std::ptrdiff_t{e} * a.outputs * a.inputs, a.inputs, true};
        m.c = a.y + slots.first * a.outputs;
        m.stride = a.outputs;
        multiply(m);
    });
}

/// See GroupedLinearBackwardArgs.
template <class T>
void grouped_linear_backward(workers& team, const GroupedLinearBackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    const auto slots_of = [&](int e) { return row_range{a.offsets[e], a.offsets[e + 1] - a.offsets[e]}; };
    const auto strips = detail::expert_strips(a.experts, 128, slots_of);
    team.run(static_cast<int>(strips.size()), [&](int task) {
        const auto [e, slots] = strips[static_cast<std::size_t>(task)];
        product<T> m{static_cast<int>(slots.count), a.inputs, a.outputs};
        m.a = {g.grad_y + slots.first * a.outputs, a.outputs};
        m.b = {a.weight + std::ptrdiff_t{e} * a.outputs * a.inputs, a.inputs};
        m.c = g.grad_x + slots.first * a.inputs;
        m.stride = a.inputs;
        m.beta = g.adds_to_grad_x ? T{1} : T{0};
        multiply(m);
    });
    const auto outputs = detail::expert_strips(a.experts, 64, [&](int e) {
        return row_range{0, slots_of(e).count > 0 ? a.outputs : 0};
    });
    team.run(static_cast<int>(outputs.size()), [&](int task) {
        const auto [e, part] = outputs[static_cast<std::size_t>(task)];
        const row_range slots = slots_of(e);
        product<T> m{static_cast<int>(part.count), a.inputs, static_cast<int>(slots.count)};
        m.a = {g.grad_y + slots.first * a.outputs + part.first, a.outputs, true};
        m.b = {a.x + slots.first * a.inputs, a.inputs};
        m.c = g.grad_weight + (std::ptrdiff_t{e} * a.outputs + part.first) * a.inputs;
        m.stride = a.inputs;
        m.beta = T{1};
        multiply(m);
    });
}

/// See WeightedSwigluArgs.
template <class T>
void weighted_swiglu(workers& team, const WeightedSwigluArgs<uniform_precision<T>>& a) {
    for_rows(team, a.slots, [&](long long slot) {
        const T weight = a.weights[a.assignment[slot]];
        const T* gate = a.gate + slot * a.hidden;
        const T* up = a.up + slot * a.hidden;
        T* act = a.act + slot * a.hidden;
        for (int c = 0; c < a.hidden; ++c) act[c] = weight * (gate[c] * detail::sigmoid(gate[c]) * up[c]);
    });
}

/// See WeightedSwigluBackwardArgs.
template <class T>
void weighted_swiglu_backward(workers& team, const WeightedSwigluBackwardArgs<uniform_precision<T>>& g) {
    const auto& a = g.forward;
    for_rows(team, a.slots, [&](long long slot) {
        const T weight = a.weights[a.assignment[slot]];
        const long long at = slot * a.hidden;
        T along[16] = {};  // gradient of the weight, in sixteen running sums
        for (int c = 0; c < a.hidden; ++c) {
            const T gate = a.gate[at + c], up = a.up[at + c], grad = g.grad_act[at + c];
            const T s = detail::sigmoid(gate);
            along[c % 16] += grad * (gate * s * up);
            g.grad_gate[at + c] = weight * grad * up * (s + gate * s * (T{1} - s));
            g.grad_up[at + c] = weight * grad * gate * s;
        }
        g.grad_weights[a.assignment[slot]] = detail::sum(along, 16);
    });
}

}  // namespace sdepth::inline v0::on_host
