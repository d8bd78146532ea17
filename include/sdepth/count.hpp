// SPDX-License-Identifier: MIT
// The counts of a model: parameters, FLOPs, state, each exact, constexpr and named by its convention. Rank 4.
//
// Every number is a sum over the model's runs of what one layer's tensor rows and mixing work say.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <type_traits>

#include "sdepth/inert.hpp"
#include "sdepth/model.hpp"

namespace sdepth::inline v0 {

// ---- depth ----------------------------------------------------------------------------------------------------------

namespace detail {

/// One value for each layer kind of a model: depth costs arithmetic on few numbers, never another look at a layer.
template <class T, class... Ls, class F>
constexpr std::array<T, sizeof...(Ls)> for_each_kind(type_list<Ls...>, F f) {
    return {f(std::type_identity<Ls>{})...};
}

template <class L>
constexpr long long sparsity_of() {
    if constexpr (requires { L::sparsity; }) {
        return L::sparsity;
    } else {
        return 1;
    }
}

/// Layers of each kind, in whole or only those with weights of their own. The walks over runs add whole numbers and
/// nothing else, for a formula may unroll to tens of thousands.
template <class M>
constexpr std::array<count, M::kinds::size> count_layers(bool owners_only) {
    std::array<count, M::kinds::size> sums{};
    int index = 0;
    for (const layer_run& r : M::runs) {
        if (!owners_only || r.weights == index) sums[static_cast<std::size_t>(r.kind)] += r.times;
        ++index;
    }
    return sums;
}
template <class M>
inline constexpr auto layers_by_kind = count_layers<M>(false);
template <class M>
inline constexpr auto owners_by_kind = count_layers<M>(true);

/// The verdict on sums of the shares of model M's layer kinds: the same numbers whatever was summed, hence one error.
template <class M>
constexpr verdict shares_verdict(bool exact) {
    return require(exact, rule::shares_fit, M::kinds::size);
}

template <class M>
constexpr ratio sum_active_layers() {
    const auto shares = for_each_kind<ratio>(typename M::kinds{},
                                             []<class L>(std::type_identity<L>) { return ratio(1, sparsity_of<L>()); });
    ratio sum;
    for (std::size_t kind = 0; kind < shares.size(); ++kind) sum += shares[kind] * ratio(layers_by_kind<M>[kind]);
    return sum;
}

template <class M>
constexpr auto count_active_layers() {
    if constexpr (M::valid) {
        constexpr ratio sum = sum_active_layers<M>();
        constexpr verdict v = shares_verdict<M>(!sum.overflowed());
        if constexpr (accepted<v.broken, v.a, v.b>()) {
            return sum;
        } else {
            return inert_ratio{};
        }
    } else {
        return inert_ratio{};
    }
}

}  // namespace detail

/// Layers that a token passes on average: a sparse layer counts 1/K. `M::layers` is the physical depth.
template <class M>
inline constexpr auto active_layers = detail::count_active_layers<M>();

// ---- parameters -----------------------------------------------------------------------------------------------------

/// Parameter counts; docs/notation.md says what each leaves out.
struct param_counts {
    long long total = 0;  ///< every trained number
    long long state = 0;  ///< untrained numbers that the model file keeps (tracked cuts, expert biases)
    long long paper = 0;  ///< matrices only: no norms, router vectors of sparse layers, scales, biases (X-MoD paper)
    ratio active{};       ///< total with sparse layers x 1/K and routed experts x k/E
    std::array<long long, role_count> by_role{};

    /// Numbers in a model file without an optimiser section.
    constexpr long long file_elements() const { return total + state; }
    /// Every number, trained or not, of one role.
    constexpr long long of(role r) const { return by_role[static_cast<std::size_t>(r)]; }
};

namespace detail {

struct inert_param_counts {
    inert_number total{}, state{}, paper{};
    inert_ratio active{};
    inert_list<inert_number> by_role{};
    constexpr inert_number file_elements() const { return {}; }
    constexpr inert_number of(role) const { return {}; }
    constexpr operator param_counts() const { return {}; }  // NOLINT(google-explicit-constructor): as its numbers
};

constexpr bool is_matrix(const tensor_row& row) {
    return row.use == role::embedding || (row.scope != row_scope::none && row.use != role::router);
}

// Sums over tensors, of one layer or of a model.
struct tensor_sums {
    count total, state, paper;
    ratio active{};
    std::array<count, role_count> by_role{};

    constexpr void add(const tensor_rows& rows) {
        for (const tensor_row& row : rows) {
            const count elements = row.elements();
            (row.trained ? total : state) += elements;
            if (is_matrix(row)) paper += elements;
            if (row.trained) active += row.active * ratio(elements);
            by_role[static_cast<std::size_t>(row.use)] += elements;
        }
    }
    constexpr void add(const tensor_sums& layer, count times) {
        total += layer.total * times;
        state += layer.state * times;
        paper += layer.paper * times;
        active += layer.active * ratio(times);
        for (std::size_t i = 0; i < by_role.size(); ++i) by_role[i] += layer.by_role[i] * times;
    }
};

template <class M>
constexpr param_counts count_params() {
    param_counts params;
    const auto layers = for_each_kind<tensor_sums>(typename M::kinds{}, []<class L>(std::type_identity<L>) {
        tensor_sums sum;
        sum.add(L::tensors(M::dims));
        return sum;
    });
    tensor_sums sum;
    sum.add(Ends::first(M::dims));
    for (std::size_t kind = 0; kind < layers.size(); ++kind) sum.add(layers[kind], owners_by_kind<M>[kind]);
    sum.add(Ends::last(M::dims));

    params.total = sum.total.value();
    params.state = sum.state.value();
    params.paper = sum.paper.value();
    params.active = sum.active;
    for (std::size_t i = 0; i < role_count; ++i) params.by_role[i] = sum.by_role[i].value();
    return params;
}

template <class M>
constexpr auto count_params_if_valid() {
    if constexpr (M::valid) {
        constexpr param_counts sum = count_params<M>();  // `counts_fit` bounds it all, but not the denominator
        constexpr verdict v = shares_verdict<M>(!sum.active.overflowed());
        if constexpr (accepted<v.broken, v.a, v.b>()) {
            return sum;
        } else {
            return inert_param_counts{};
        }
    } else {
        return inert_param_counts{};
    }
}

}  // namespace detail

/// Parameters of model M.
template <class M>
inline constexpr auto params = detail::count_params_if_valid<M>();

// ---- FLOPs ----------------------------------------------------------------------------------------------------------

/// FLOPs of one sequence; a multiply-add is 2, matrix products only.
struct flop_count {
    ratio sequence{};
    long long tokens = 1;

    constexpr ratio per_token() const { return sequence / ratio(tokens); }
    constexpr double value() const { return sequence.value(); }
    friend constexpr bool operator==(const flop_count& a, long long flops) { return a.sequence == ratio(flops); }
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

// ---- state ----------------------------------------------------------------------------------------------------------

/// Bytes of one stored element in decoding.
struct state_precision {
    long long kv = 2;         ///< keys, values and depth slots, bf16
    long long recurrent = 4;  ///< recurrent and convolution state, f32
};

/// What decoding keeps for one sequence of `Run::seq` tokens, in bytes.
struct state_counts {
    ratio kv_expected{};           ///< keys and values, a sparse layer counted 1/K
    long long kv_capacity = 0;     ///< keys and values if every layer took every row
    long long recurrent = 0;       ///< recurrent state with the width - 1 inputs that a convolution needs
    long long recurrent_full = 0;  ///< the same with `width` inputs, as the book chapter's formula has it
    long long depth_slots = 0;     ///< slots that one position writes if every layer executes it
    long long depth_bytes = 0;     ///< keys and values of those slots, for one position
};

namespace detail {

struct inert_state_counts {
    inert_ratio kv_expected{};
    inert_number kv_capacity{}, recurrent{}, recurrent_full{}, depth_slots{}, depth_bytes{};
    constexpr operator state_counts() const { return {}; }  // NOLINT(google-explicit-constructor): as its numbers
};

// State of one layer of a kind.
struct layer_state {
    count kv, recurrent, recurrent_full, slots, slot_bytes;
    ratio taken{};  // share of the rows whose keys and values are kept
};

template <class L>
constexpr layer_state state_of_layer(const Dims& d, const Run& r, const state_precision& p) {
    const state_size size = L::state(d);
    const mixing_work work = L::mixing(d);
    const long long rows = work.window == 0 ? r.seq : std::min(r.seq, work.window);
    return {.kv = count(size.kv_row) * count(p.kv) * count(rows),
            .recurrent =
                count(p.recurrent) * (count(size.recurrent) + count(size.conv_channels) * count(size.conv_width - 1)),
            .recurrent_full =
                count(p.recurrent) * (count(size.recurrent) + count(size.conv_channels) * count(size.conv_width)),
            .slots = size.slots_written,
            .slot_bytes = count(size.slots_written) * count(size.slot) * count(p.kv),
            .taken = work.full_keys ? ratio(1) : ratio(1, sparsity_of<L>())};
}

template <class M, Run R, state_precision P>
constexpr state_counts count_state() {
    state_counts sum;
    const auto layers = for_each_kind<layer_state>(
        typename M::kinds{}, []<class L>(std::type_identity<L>) { return state_of_layer<L>(M::dims, R, P); });
    count kv, recurrent, recurrent_full, slots, slot_bytes;
    for (std::size_t kind = 0; kind < layers.size(); ++kind) {
        const layer_state& layer = layers[kind];
        const count times = layers_by_kind<M>[kind];
        kv += layer.kv * times;
        sum.kv_expected += layer.taken * ratio(layer.kv * times);
        recurrent += layer.recurrent * times;
        recurrent_full += layer.recurrent_full * times;
        slots += layer.slots * times;
        slot_bytes += layer.slot_bytes * times;
    }
    sum.kv_capacity = kv.value();
    sum.recurrent = recurrent.value();
    sum.recurrent_full = recurrent_full.value();
    sum.depth_slots = slots.value();
    sum.depth_bytes = slot_bytes.value();
    return sum;
}

/// The verdict on the state of a sequence.
template <class M>
constexpr verdict state_verdict(const state_counts& sum, long long seq) {
    verdict v = require(!sum.kv_expected.too_large(), rule::state_fits, seq);
    for (const count bytes : {sum.kv_capacity, sum.recurrent, sum.recurrent_full, sum.depth_slots, sum.depth_bytes}) {
        v = first_broken(v, require(!bytes.overflowed(), rule::state_fits, seq));
    }
    return first_broken(v, shares_verdict<M>(!sum.kv_expected.overflowed()));
}

template <class M, Run R, state_precision P>
constexpr auto count_state_if_valid() {
    if constexpr (usable_in<M, R>()) {
        constexpr state_counts sum = count_state<M, R, P>();
        constexpr verdict v = state_verdict<M>(sum, R.seq);
        if constexpr (accepted<v.broken, v.a, v.b>()) {
            return sum;
        } else {
            return inert_state_counts{};
        }
    } else {
        return inert_state_counts{};
    }
}

}  // namespace detail

/// State of model M in run R.
template <class M, Run R, state_precision P = state_precision{}>
inline constexpr auto state = detail::count_state_if_valid<M, R, P>();

// ---- what stands in -------------------------------------------------------------------------------------------------

namespace detail {

/// Whether counts are real: the model broke no rule, nor did the run, and they fit.
template <class M>
inline constexpr bool has_params = std::same_as<std::remove_cvref_t<decltype(params<M>)>, param_counts>;
template <class M, Run R>
inline constexpr bool has_flops = std::same_as<std::remove_cvref_t<decltype(flops<M, R>)>, flop_counts>;
template <class M, Run R>
inline constexpr bool has_state = std::same_as<std::remove_cvref_t<decltype(state<M, R>)>, state_counts>;

}  // namespace detail

// ---- assertions -----------------------------------------------------------------------------------------------------

/// `static_assert(counted<params<M>.total, 5>())`: on failure every compiler prints both numbers.
template <auto got, auto want>
constexpr bool counted() {
    static_assert(got == want, "sdepth: counted (first number) differs from expected (second number)");
    return true;  // or a failure would count twice
}

}  // namespace sdepth::inline v0
