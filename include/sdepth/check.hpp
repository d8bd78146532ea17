// SPDX-License-Identifier: MIT
// The walks that find the first broken rule of a formula with sizes, and of a run. Every rule is data; no text here.
// Rank 3.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include "sdepth/layer.hpp"
#include "sdepth/layers/ends.hpp"
#include "sdepth/runs.hpp"

namespace sdepth::inline v0 {

namespace detail {

// What the walk asks of a layer kind, once for each kind.
struct kind_facts {
    layer_member missing = layer_member::none;
    verdict own{};
    long long width = 0;
    bool sparse = false;
    bool anchor = false;
    bool waits_for_anchor = false;
    bool reads_slots = false;
    long long slots_written = 0;
    count elements{};
    int tensors = 0;
    verdict shapes{};  // of its tensor rows
};

// The first tensor row without elements: its number from 1, and the offending extent.
constexpr verdict check_shapes(const tensor_rows& rows) {
    long long row = 0;
    for (const tensor_row& tensor : rows) {
        ++row;
        if (tensor.rows < 1) return {rule::tensor_has_elements, 0, row, tensor.rows};
        if (tensor.cols < 0) return {rule::tensor_has_elements, 0, row, tensor.cols};
        if (tensor.copies < 1) return {rule::tensor_has_elements, 0, row, tensor.copies};
    }
    return {};
}

// Sizes that a user's layer may multiply without asking for their bounds; ours ask, and are named. 0: left out.
constexpr verdict check_bounds(const Dims& d) {
    const auto bound = [](long long size, size_name name) { return size == 0 ? verdict{} : require_size(size, name); };
    return first_broken(bound(d.head_dim, size_name::head_dim), bound(d.heads, size_name::heads),
                        bound(d.kv_heads, size_name::kv_heads), bound(d.ffn, size_name::ffn),
                        bound(d.expert_ffn, size_name::expert_ffn));
}

template <class L>
constexpr kind_facts facts_of(const Dims& d, bool bounded) {
    kind_facts facts;
    facts.missing = lack_of<L>::member;
    if constexpr (lack_of<L>::member == layer_member::none) {
        facts.own = L::check(d);
        facts.width = d.width;
        if constexpr (requires { L::width(d); }) facts.width = L::width(d);
        facts.sparse = requires { L::sparsity; };
        facts.anchor = L::has_mixer && L::has_ffn && !facts.sparse;
        facts.waits_for_anchor = L::waits_for_anchor;
        if (facts.own.ok() && bounded) {  // sizes below are meaningless, divide by zero or overflow when a size is bad
            facts.reads_slots = L::mixing(d).per_slot > 0;
            facts.slots_written = L::state(d).slots_written;
            const tensor_rows tensors = L::tensors(d);
            facts.tensors = tensors.size;
            facts.shapes = check_shapes(tensors);
            if (!facts.shapes.ok()) return facts;
            for (const tensor_row& row : tensors) facts.elements += row.elements();
        }
    }
    return facts;
}

template <class... Ls>
constexpr std::array<kind_facts, sizeof...(Ls)> facts_of_all(type_list<Ls...>, const Dims& d, bool bounded) {
    return {facts_of<Ls>(d, bounded)...};
}

constexpr verdict at_layer(verdict v, long long layer) {
    v.layer = layer;
    return v;
}

}  // namespace detail

/// The first broken rule of formula type P with sizes d; `verdict::ok()` if there is none. Layers count from 1.
template <pattern P>
constexpr verdict check(const Dims& d) {
    using formula = runs_of<P>;
    if (formula::too_many) return {rule::too_many_runs, 0, formula::size, formula::largest};
    if (count(formula::layers).overflowed()) return {rule::counts_fit, 0, count::largest};

    if (const verdict ends = Ends::check(d); !ends.ok()) return ends;  // first, for every layer has the width

    const verdict bounds = detail::check_bounds(d);
    const auto facts = detail::facts_of_all(typename formula::kinds{}, d, bounds.ok());
    count elements = count(d.vocab) * count(d.width) * 2;
    long long waiting_since = 0;  // first sparse layer whose bias no anchor has cleared yet
    long long waiting = 0;
    long long first_reader = 0;
    bool reads_a_slot = false;
    count slots;  // that a position can have

    for (const layer_run& r : formula::runs) {
        const long long layer = r.first + 1;
        if (r.times < 1) return {rule::repeat_of_nothing, layer, r.times};
        const detail::kind_facts& kind = facts[static_cast<std::size_t>(r.kind)];
        if (kind.missing != detail::layer_member::none) {
            return {rule::lacks_member, layer, static_cast<long long>(kind.missing)};
        }
        if (!kind.own.ok()) return detail::at_layer(kind.own, layer);
        if (kind.tensors > tensor_rows::capacity) {
            return {rule::tensor_rows_fit, layer, kind.tensors, tensor_rows::capacity};
        }
        if (!kind.shapes.ok()) return detail::at_layer(kind.shapes, layer);
        if (kind.width != d.width) return {rule::widths_agree, layer, kind.width, d.width};

        if (kind.anchor) waiting = 0;
        if (kind.waits_for_anchor) {
            if (waiting == 0) waiting_since = layer;
            waiting += r.times;
        }
        if (kind.reads_slots) {
            if (first_reader == 0) first_reader = layer;
            reads_a_slot = reads_a_slot || slots.value() > 0 || (r.times > 1 && kind.slots_written > 0);
        }
        slots += count(r.times) * count(kind.slots_written);
        if (slots.value() > largest_size(size_name::slots)) {
            return {rule::size_too_large, layer, static_cast<long long>(size_name::slots), slots.value()};
        }
        elements += count(r.times) * kind.elements;
    }
    if (!bounds.ok()) return bounds;
    if (waiting > 0) return {rule::sparse_needs_anchor, waiting_since, waiting};
    if (first_reader != 0 && !reads_a_slot) return {rule::depth_has_slots, first_reader};
    if (elements.overflowed()) return {rule::counts_fit, 0, count::largest};
    return {};
}

/// The largest size of a run, and of its micro-batch in tokens: kernels number rows by int.
inline constexpr long long largest_run_size = 1LL << 30;

/// The first broken rule of a run; `verdict::ok()` if there is none. Not about a layer.
constexpr verdict check_run(const Run& r) {
    using detail::require;
    const auto from = [](long long least, run_size name, long long value) {
        return require(least <= value && value <= largest_run_size, rule::run_within_range,
                       static_cast<long long>(name), value);
    };
    const auto replay = static_cast<long long>(r.replay);
    const verdict sizes = detail::first_broken(
        from(1, run_size::seq, r.seq), from(1, run_size::batch, r.batch), from(1, run_size::accumulate, r.accumulate),
        from(0, run_size::document, r.document), from(1, run_size::max_documents, r.max_documents),
        from(1, run_size::ranks, r.ranks), from(0, run_size::context, r.context),
        require(0 <= replay && replay <= static_cast<long long>(recompute::full), rule::run_within_range,
                static_cast<long long>(run_size::replay), replay));
    if (!sizes.ok()) return sizes;
    const count tokens = count(r.batch) * count(r.seq);
    const count step = tokens * count(r.accumulate) * count(r.ranks);
    return detail::first_broken(require(r.document <= r.seq, rule::document_within_sequence, r.document, r.seq),
                                require(tokens.value() <= largest_run_size && !step.overflowed(), rule::run_tokens_fit,
                                        tokens.value(), step.value()));
}

}  // namespace sdepth::inline v0
