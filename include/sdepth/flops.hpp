// SPDX-License-Identifier: MIT
// FLOPs of a model in a run, each count exact, constexpr and named by its convention: sums over what the tensor rows
// and the mixing work of one layer of each kind say. Rank 4.
#pragma once

#include <algorithm>
#include <array>
#include <compare>
#include <concepts>
#include <cstddef>
#include <type_traits>

#include "sdepth/inert.hpp"
#include "sdepth/layer_counts.hpp"
#include "sdepth/model.hpp"

namespace sdepth::inline v0 {

/// FLOPs of one sequence; a multiply-add is 2, matrix products only.
struct flop_count {
    ratio sequence{};
    long long tokens = 1;

    constexpr ratio per_token() const { return sequence / ratio(tokens); }
    constexpr double value() const { return sequence.value(); }
    /// Compares FLOPs of a sequence, exactly.
    friend constexpr bool operator==(const flop_count& a, const flop_count& b) { return a.sequence == b.sequence; }
    friend constexpr bool operator==(const flop_count& a, long long flops) { return a.sequence == ratio(flops); }
    friend constexpr std::partial_ordering operator<=>(const flop_count& a, const flop_count& b) {
        return a.sequence <=> b.sequence;
    }
    friend constexpr std::partial_ordering operator<=>(const flop_count& a, long long flops) {
        return a.sequence <=> ratio(flops);
    }
    /// A real number would lose its fraction: compare value() with it.
    template <std::floating_point Real>
    friend bool operator==(const flop_count&, Real) = delete;
    template <std::floating_point Real>
    friend std::partial_ordering operator<=>(const flop_count&, Real) = delete;
};

/// FLOP counts by convention.
struct flop_counts {
    flop_count paper;  ///< X-MoD paper: forward, all key pairs, shares 1/K and 1/K^2, no head, no router vectors
    flop_count paper_with_head;  ///< the same and the output head (MoDA paper)
    flop_count paper_mixing;     ///< the part of `paper` that is mixing: pairs, states and slots
    flop_count forward;          ///< ceil(L/K) rows, visible pairs, all routers, head
    flop_count useful;           ///< 3 x forward; MFU counts this
    flop_count training;         ///< executed: linear backward 2 x, attention backward 2.5 x, replays
};

namespace detail {

struct inert_flop_count : inert_ratio {
    inert_ratio sequence{};
    inert_number tokens{};
    constexpr inert_ratio per_token() const { return {}; }
    constexpr operator flop_count() const { return {}; }  // NOLINT(google-explicit-constructor): as its numbers
};
struct inert_flop_counts {
    inert_flop_count paper{}, paper_with_head{}, paper_mixing{}, forward{}, useful{}, training{};
    constexpr operator flop_counts() const { return {}; }  // NOLINT(google-explicit-constructor): as its numbers
};

// Sum of min(i + 1, window) over n queries; window 0 = all keys.
constexpr count visible_pairs(long long n, long long window) {
    if (window == 0 || window >= n) return n % 2 == 0 ? count(n / 2) * count(n + 1) : count(n) * count((n + 1) / 2);
    return visible_pairs(window, 0) + count(n - window) * count(window);
}

// The rows and pairs that a layer of sparsity k executes in one sequence, chosen rows taken as evenly spaced.
struct executed {
    long long rows = 0;
    ratio pairs{};
};

constexpr executed executed_by(long long seq, long long document, long long k, bool by_document,
                               const mixing_work& work) {
    const long long length = document == 0 ? seq : document;
    const long long whole = seq / length;
    const long long rest = seq % length;
    executed sum;
    const auto add = [&](long long documents, long long tokens, long long rows) {
        if (documents == 0 || rows == 0) return;
        const count pairs =
            visible_pairs(work.full_keys ? tokens : rows, work.full_keys ? work.window : ceil_div(work.window, k));
        const ratio share = work.full_keys ? ratio(rows, tokens) : ratio(1);
        sum.pairs += share * ratio(pairs * count(documents));
    };
    if (by_document) {
        sum.rows = whole * ceil_div(length, k) + ceil_div(rest, k);
        add(whole, length, ceil_div(length, k));
        add(rest == 0 ? 0 : 1, rest, ceil_div(rest, k));
    } else {
        sum.rows = ceil_div(seq, k);
        const long long in_rest = rest / k;  // the others are dealt evenly to the whole documents
        const long long shared = sum.rows - in_rest;
        add(whole - shared % whole, length, shared / whole);
        add(shared % whole, length, shared / whole + 1);
        add(rest == 0 ? 0 : 1, rest, in_rest);
    }
    return sum;
}

// Depth slots read by a run of layers: `before` were written when it starts, each layer writes `each`. Of sparse layers
// an upper bound, as if they executed every position: which of them share a row is up to their routers.
constexpr count slots_read(count before, long long each, long long times, long long at_most) {
    long long free = times;  // layers that the bound does not touch
    if (at_most != 0) {
        const long long room = at_most - std::min(at_most, before.value());
        free = each == 0 ? (room > 0 ? times : 0) : std::min(times, ceil_div(room, each));
    }
    const count grown = visible_pairs(std::max(free, 1LL) - 1, 0);  // 0 + 1 + ... + free - 1
    return before * count(free) + count(each) * grown + count(at_most) * count(times - free);
}

// FLOPs of one layer of a kind for one sequence; those of depth slots are per readable slot.
struct layer_flops {
    ratio linear;        // forward products with weights
    ratio hidden;        // the part of them that selective replay repeats
    ratio pairs;         // forward (query, key) pairs
    ratio states;        // forward recurrences
    ratio per_slot;      // forward (query, slot) pairs
    ratio paper;         // products with weights, paper convention
    ratio paper_mixing;  // pairs and recurrences, paper convention
    ratio paper_per_slot;
    bool reads_slots = false;
    long long slots_written = 0;
    long long slots_read_at_most = 0;
};

template <class L>
constexpr layer_flops flops_of_layer(const Dims& d, const Run& r) {
    constexpr long long k = sparsity_of<L>();
    const mixing_work work = L::mixing(d);
    const executed own = executed_by(r.seq, r.document, k, L::chooses_by_document, work);
    const ratio seq(r.seq);
    layer_flops sum;
    for (const tensor_row& row : L::tensors(d)) {
        if (row.scope == row_scope::none) continue;
        const ratio products(count(2) * row.elements());
        // `active` holds 1/K of a sparse layer; executed rows are ceil(L/K), so take it out again.
        const bool executed = row.scope == row_scope::own;
        const ratio forward = products * (executed ? row.active * ratio(k) * ratio(own.rows) : seq);
        sum.linear += forward;
        if (row.use == role::gate || row.use == role::up) sum.hidden += forward;
        if (row.use != role::router) sum.paper += products * row.active * seq;
    }
    sum.pairs = ratio(count(2) * count(work.per_pair)) * own.pairs;
    sum.states = ratio(count(2) * count(work.per_row)) * ratio(own.rows);
    sum.per_slot = ratio(count(2) * count(work.per_slot)) * ratio(own.rows);

    const long long length = r.document == 0 ? r.seq : std::min(r.document, r.seq);
    const long long keys = work.window == 0 ? length : std::min(work.window, length);
    const ratio paper_rows = seq * ratio(1, k);
    const ratio paper_keys = ratio(keys) * (work.full_keys ? ratio(1) : ratio(1, k));
    sum.paper_mixing =
        paper_rows * (ratio(count(2) * count(work.per_pair)) * paper_keys + ratio(count(2) * count(work.per_row)));
    sum.paper_per_slot = paper_rows * ratio(count(2) * count(work.per_slot));
    sum.reads_slots = work.per_slot > 0;
    sum.slots_written = L::state(d).slots_written;
    sum.slots_read_at_most = work.slots_read_at_most;
    return sum;
}

template <class M, Run R>
constexpr flop_counts count_flops() {
    flop_counts sum;
    const auto layers = for_each_kind<layer_flops>(
        typename M::kinds{}, []<class L>(std::type_identity<L>) { return flops_of_layer<L>(M::dims, R); });
    std::array<count, M::kinds::size> read{};  // depth slots that the layers of a kind read
    count slots;
    for (const layer_run& r : M::runs) {
        const layer_flops& layer = layers[static_cast<std::size_t>(r.kind)];
        if (layer.reads_slots) {
            read[static_cast<std::size_t>(r.kind)] +=
                slots_read(slots, layer.slots_written, r.times, layer.slots_read_at_most);
        }
        slots += count(layer.slots_written) * count(r.times);
    }

    ratio linear;     // forward products with weights
    ratio attention;  // forward pairs and slots, whose backward is 2.5 x
    ratio states;     // forward recurrences
    ratio replayed;
    ratio paper;
    ratio paper_mixing;
    for (std::size_t kind = 0; kind < layers.size(); ++kind) {
        const layer_flops& layer = layers[kind];
        const ratio times(layers_by_kind<M>[kind]);
        const ratio mixed = layer.pairs * times + layer.per_slot * ratio(read[kind]);
        linear += layer.linear * times;
        attention += mixed;
        states += layer.states * times;
        if (R.replay == recompute::selective) replayed += layer.hidden * times;
        if (R.replay == recompute::full) replayed += (layer.linear + layer.states) * times + mixed;
        paper += layer.paper * times;
        paper_mixing += layer.paper_mixing * times + layer.paper_per_slot * ratio(read[kind]);
    }

    const ratio head = ratio(2) * ratio(count(M::dims.vocab) * count(M::dims.width)) * ratio(R.seq);
    const ratio forward = linear + attention + states + head;
    const auto counted = [](ratio flops) { return flop_count{flops, R.seq}; };
    sum.paper = counted(paper + paper_mixing);
    sum.paper_with_head = counted(paper + paper_mixing + head);
    sum.paper_mixing = counted(paper_mixing);
    sum.forward = counted(forward);
    sum.useful = counted(forward * ratio(3));
    sum.training = counted((linear + head + states) * ratio(3) + attention * ratio(7, 2) + replayed);
    return sum;
}

/// The verdict on the FLOPs of a sequence: too large, or too fine for a fraction, also of one token.
template <class M>
constexpr verdict flops_verdict(const flop_counts& sum, long long seq) {
    verdict v;
    for (const flop_count& flops :
         {sum.training, sum.useful, sum.forward, sum.paper_with_head, sum.paper, sum.paper_mixing}) {
        v = first_broken(v, require(!flops.sequence.too_large(), rule::flops_fit, seq),
                         shares_verdict<M>(!flops.per_token().overflowed()));
    }
    return v;
}

template <class M, Run R>
constexpr auto count_flops_if_valid() {
    if constexpr (usable_in<M, R>()) {
        constexpr flop_counts sum = count_flops<M, R>();
        constexpr verdict v = flops_verdict<M>(sum, R.seq);
        if constexpr (accepted<v.broken, v.a, v.b>()) {
            return sum;
        } else {
            return inert_flop_counts{};
        }
    } else {
        return inert_flop_counts{};
    }
}

}  // namespace detail

/// FLOPs of model M in run R, per sequence of `R.seq` tokens.
template <class M, Run R>
inline constexpr auto flops = detail::count_flops_if_valid<M, R>();

namespace detail {

/// Whether these counts are real: the model broke no rule, nor did the run, and they fit.
template <class M, Run R>
inline constexpr bool has_flops = std::same_as<std::remove_cvref_t<decltype(flops<M, R>)>, flop_counts>;

}  // namespace detail

}  // namespace sdepth::inline v0
