// SPDX-License-Identifier: MIT
// The counts of a model: parameters, FLOPs, state, each exact, constexpr and named by its convention. Rank 4.
//
// Every number is a sum over the model's runs of what one layer's tensor rows and mixing work say.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "sdepth/model.hpp"

namespace sdepth::inline v0 {

// ---- parameters -----------------------------------------------------------------------------------------------------

/// Parameter counts. Conventions: architecture.md section 3, docs/notation.md.
struct param_counts {
    long long total = 0;  ///< every trained number
    long long state = 0;  ///< untrained numbers that the model file keeps (tracked cuts, expert biases)
    long long paper = 0;  ///< matrices only: no norms, router vectors of sparse layers, scales, biases (X-MoD paper)
    ratio active{};       ///< total with sparse layers x 1/K and routed experts x k/E
    std::array<long long, static_cast<std::size_t>(role::bias) + 1> by_role{};

    /// Numbers in a model file without an optimiser section.
    constexpr long long file_elements() const { return total + state; }
    /// Every number, trained or not, of one role.
    constexpr long long of(role r) const { return by_role[static_cast<std::size_t>(r)]; }
};

namespace detail {

/// Calls f(row, times) for each tensor row of the model, `times` being the layers that own such a tensor.
template <class M, class F>
constexpr void for_each_tensor(F f) {
    for (const tensor_row& row : Ends::first(M::dims)) f(row, 1LL);
    int index = 0;
    for (const run& r : M::runs) {
        if (r.weights == index) {
            visit_type(typename M::kinds{}, r.kind, [&]<class L>(std::type_identity<L>) {
                for (const tensor_row& row : L::tensors(M::dims)) f(row, r.times);
            });
        }
        ++index;
    }
    for (const tensor_row& row : Ends::last(M::dims)) f(row, 1LL);
}

constexpr bool is_matrix(const tensor_row& row) {
    return row.use == role::embedding || (row.scope != row_scope::none && row.use != role::router);
}

template <class M>
constexpr param_counts count_params() {
    param_counts sum;
    if (!M::valid) return sum;
    count total, state, paper;
    for_each_tensor<M>([&](const tensor_row& row, long long times) {
        const count elements = row.elements() * count(times);
        (row.trained ? total : state) += elements;
        if (is_matrix(row)) paper += elements;
        if (row.trained) sum.active += row.active * ratio(elements);
        long long& of_role = sum.by_role[static_cast<std::size_t>(row.use)];
        of_role = (count(of_role) + elements).value();
    });
    sum.total = total.value();
    sum.state = state.value();
    sum.paper = paper.value();
    return sum;
}

}  // namespace detail

/// Parameters of model M.
template <class M>
inline constexpr param_counts params = detail::count_params<M>();

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
    const long long length = document == 0 ? seq : std::min(document, seq);
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

// Depth slots read by a run of layers: `before` were written when it starts, each layer writes `each`.
constexpr count slots_read(long long before, long long each, long long times, long long at_most) {
    count sum;
    for (long long i = 0; i < times; ++i) {
        const long long readable = before + i * each;
        sum += at_most == 0 ? readable : std::min(readable, at_most);
    }
    return sum;
}

template <class L>
constexpr long long sparsity_of() {
    if constexpr (requires { L::sparsity; }) {
        return L::sparsity;
    } else {
        return 1;
    }
}

template <class L>
constexpr bool chooses_by_document() {
    if constexpr (requires { L::policy.scope; }) {
        return L::policy.scope == std::remove_cvref_t<decltype(L::policy.scope)>::document;
    } else {
        return false;
    }
}

template <class M, Run R>
constexpr flop_counts count_flops() {
    flop_counts sum;
    if (!M::valid) return sum;
    ratio linear;     // forward products with weights
    ratio attention;  // forward pairs and slots, whose backward is 2.5 x
    ratio states;     // forward recurrences
    ratio replayed;
    ratio paper;
    ratio paper_mixing;
    const ratio seq(R.seq);
    long long slots = 0;

    for (const run& r : M::runs) {
        visit_type(typename M::kinds{}, r.kind, [&]<class L>(std::type_identity<L>) {
            constexpr long long k = sparsity_of<L>();
            constexpr mixing_work work = L::mixing(M::dims);
            constexpr executed own = executed_by(R.seq, R.document, k, chooses_by_document<L>(), work);
            const ratio times(r.times);

            ratio layer_linear;
            for (const tensor_row& row : L::tensors(M::dims)) {
                if (row.scope == row_scope::none) continue;
                const ratio products = ratio(row.elements()) * ratio(2);
                // `active` holds 1/K of a sparse layer; executed rows are ceil(L/K), so take it out again.
                const ratio share = row.scope == row_scope::own ? row.active * ratio(k) : ratio(1);
                const ratio rows(row.scope == row_scope::own ? own.rows : R.seq);
                const ratio forward = products * share * rows;
                layer_linear += forward;
                const bool hidden = row.use == role::gate || row.use == role::up;
                if (R.replay == recompute::selective && hidden && L::has_ffn) replayed += forward * times;
                if (row.use != role::router) paper += products * row.active * seq * times;
            }
            const ratio read(slots_read(slots, L::state(M::dims).slots_written, r.times, work.slots_read_at_most));
            const ratio layer_pairs = ratio(2 * work.per_pair) * own.pairs;
            const ratio slot_work = ratio(2 * work.per_slot) * ratio(own.rows) * read;
            const ratio layer_states = ratio(2 * work.per_row) * ratio(own.rows);
            linear += layer_linear * times;
            attention += layer_pairs * times + slot_work;
            states += layer_states * times;
            if (R.replay == recompute::full) {
                replayed += (layer_linear + layer_pairs + layer_states) * times + slot_work;
            }

            const long long length = R.document == 0 ? R.seq : std::min(R.document, R.seq);
            const long long keys = work.window == 0 ? length : std::min(work.window, length);
            const ratio key_share = work.full_keys ? ratio(1) : ratio(1, k);
            const ratio pairs = ratio(2 * work.per_pair) * seq * ratio(1, k) * ratio(keys) * key_share;
            paper_mixing += (pairs + ratio(2 * work.per_row) * seq * ratio(1, k)) * times +
                            ratio(2 * work.per_slot) * seq * ratio(1, k) * read;
            slots += L::state(M::dims).slots_written * r.times;
        });
    }

    const ratio head = ratio(2) * ratio(count(M::dims.vocab) * count(M::dims.width)) * seq;
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

template <class M, Run R>
struct flops_gate {
    static_assert(!M::valid || R.seq >= 1, "sdepth: flops need a length: set Run::seq");
    static constexpr flop_counts value = count_flops<M, R>();
    static_assert(!value.training.sequence.overflowed() && !value.paper.sequence.overflowed(),
                  "sdepth: a FLOP count does not fit 63 bits: use a shorter Run::seq");
};

}  // namespace detail

/// FLOPs of model M in run R, per sequence of `R.seq` tokens.
template <class M, Run R>
inline constexpr flop_counts flops = detail::flops_gate<M, R>::value;

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
    long long recurrent_full = 0;  ///< the same with `width` inputs, as the chapter counts (D-34)
    long long depth_slots = 0;     ///< slots that one position writes
    long long depth_bytes = 0;     ///< keys and values of those slots, for one position
};

namespace detail {

template <class M, Run R, state_precision P>
constexpr state_counts count_state() {
    state_counts sum;
    if (!M::valid) return sum;
    count capacity, recurrent, recurrent_full, slots, slot_bytes;
    for (const run& r : M::runs) {
        visit_type(typename M::kinds{}, r.kind, [&]<class L>(std::type_identity<L>) {
            const state_size size = L::state(M::dims);
            const mixing_work work = L::mixing(M::dims);
            const long long rows = work.window == 0 ? R.seq : std::min(R.seq, work.window);
            const count kv = count(size.kv_row) * count(P.kv) * count(rows) * count(r.times);
            capacity += kv;
            sum.kv_expected += ratio(kv) * (work.full_keys ? ratio(1) : ratio(1, sparsity_of<L>()));
            const count states = count(P.recurrent) * count(r.times);
            recurrent += states * (count(size.recurrent) + count(size.conv_channels) * count(size.conv_width - 1));
            recurrent_full += states * (count(size.recurrent) + count(size.conv_channels) * count(size.conv_width));
            slots += count(size.slots_written) * count(r.times);
            slot_bytes += count(size.slots_written) * count(size.slot) * count(P.kv) * count(r.times);
        });
    }
    sum.kv_capacity = capacity.value();
    sum.recurrent = recurrent.value();
    sum.recurrent_full = recurrent_full.value();
    sum.depth_slots = slots.value();
    sum.depth_bytes = slot_bytes.value();
    return sum;
}

}  // namespace detail

/// State of model M in run R.
template <class M, Run R, state_precision P = state_precision{}>
inline constexpr state_counts state = detail::count_state<M, R, P>();

// ---- assertions -----------------------------------------------------------------------------------------------------

/// `static_assert(counted<params<M>.total, 5>())`: on failure every compiler prints both numbers.
template <long long got, long long want>
constexpr bool counted() {
    static_assert(got == want, "sdepth: counted (first number) differs from expected (second number)");
    return got == want;
}

}  // namespace sdepth::inline v0
