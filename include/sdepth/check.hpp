// SPDX-License-Identifier: MIT
// The walk that finds the first broken rule of a formula with sizes. Every rule is data; no text here. Rank 3.
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
};

template <class L>
constexpr kind_facts facts_of(const Dims& d) {
    kind_facts facts;
    facts.missing = lack_of<L>::member;
    if constexpr (lack_of<L>::member == layer_member::none) {
        facts.own = L::check(d);
        facts.width = d.width;
        if constexpr (requires { L::width(d); }) facts.width = L::width(d);
        facts.sparse = requires { L::sparsity; };
        facts.anchor = L::has_mixer && L::has_ffn && !facts.sparse;
        if constexpr (requires { L::policy.clear_every; }) {
            facts.waits_for_anchor = L::policy.bias && L::policy.clear_every == 0;
        }
        if (facts.own.ok()) {  // sizes below are meaningless, or divide by zero, when a size is missing
            facts.reads_slots = L::mixing(d).per_slot > 0;
            facts.slots_written = L::state(d).slots_written;
            for (const tensor_row& row : L::tensors(d)) facts.elements += row.elements();
        }
    }
    return facts;
}

template <class... Ls>
constexpr std::array<kind_facts, sizeof...(Ls)> facts_of_all(type_list<Ls...>, const Dims& d) {
    return {facts_of<Ls>(d)...};
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

    const auto facts = detail::facts_of_all(typename formula::kinds{}, d);
    count elements = count(d.vocab < 0 ? 0 : d.vocab) * count(d.width < 0 ? 0 : d.width) * 2;
    long long waiting_since = 0;  // first sparse layer whose bias no anchor has cleared yet
    long long waiting = 0;
    long long first_reader = 0;
    bool reads_a_slot = false;
    bool slots_exist = false;

    for (const layer_run& r : formula::runs) {
        const long long layer = r.first + 1;
        if (r.times < 1) return {rule::repeat_of_nothing, layer, r.times};
        const detail::kind_facts& kind = facts[static_cast<std::size_t>(r.kind)];
        if (kind.missing != detail::layer_member::none) {
            return {rule::lacks_member, layer, static_cast<long long>(kind.missing)};
        }
        if (!kind.own.ok()) return detail::at_layer(kind.own, layer);
        if (kind.width != d.width) return {rule::widths_agree, layer, kind.width, d.width};

        if (kind.anchor) waiting = 0;
        if (kind.waits_for_anchor) {
            if (waiting == 0) waiting_since = layer;
            waiting += r.times;
        }
        if (kind.reads_slots) {
            if (first_reader == 0) first_reader = layer;
            reads_a_slot = reads_a_slot || slots_exist || (r.times > 1 && kind.slots_written > 0);
        }
        slots_exist = slots_exist || kind.slots_written > 0;
        elements += count(r.times) * kind.elements;
    }
    if (const verdict ends = Ends::check(d); !ends.ok()) return ends;
    if (waiting > 0) return {rule::sparse_needs_anchor, waiting_since, waiting};
    if (first_reader != 0 && !reads_a_slot) return {rule::depth_has_slots, first_reader};
    if (elements.overflowed() || count(formula::layers).overflowed()) return {rule::counts_fit, 0, count::largest};
    return {};
}

}  // namespace sdepth::inline v0
