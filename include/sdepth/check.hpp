// SPDX-License-Identifier: MIT
// The walks that find the first broken rule of a formula with sizes, and of a run. Every rule is data; no text here.
// Rank 3.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
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
    bool anchor = false;
    bool waits_for_anchor = false;
    bool reads_slots = false;
    long long slots_written = 0;
    count elements{};
    int tensors = 0;
    verdict numbers{};  // of its tensor rows, mixing and state
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

// The first tensor without a name of its own in a file: its number from 1, and that of the tensor whose name it has;
// its own number for copies whose name lacks theirs, 0 for an empty name.
constexpr verdict check_names(const tensor_rows& rows) {
    long long row = 0;
    for (const tensor_row& tensor : rows) {
        ++row;
        if (tensor.name.empty()) return {rule::tensor_names_differ, 0, row};
        long long other = 0;
        for (const tensor_row& earlier : rows) {
            if (++other == row) break;
            if (earlier.name == tensor.name) return {rule::tensor_names_differ, 0, row, other};
        }
        if (tensor.copies > 1 && tensor.name.find("{e}") == std::string_view::npos) {
            return {rule::tensor_names_differ, 0, row, row};
        }
    }
    return {};
}

// The first of a layer's members that says less than the others do.
constexpr verdict check_members(std::string_view name, bool has_parts, const tensor_rows& rows) {
    const auto says_too_little = [](layer_member member) {
        return verdict{rule::layer_members_agree, 0, static_cast<long long>(member)};
    };
    if (name.empty()) return says_too_little(layer_member::name);
    if (has_parts) return {};
    for (const tensor_row& tensor : rows) {
        if (tensor.cols > 0 || tensor.scope != row_scope::none) return says_too_little(layer_member::has_mixer);
    }
    return {};
}

// Breaks `broken` unless `value` is an enumerator, of which `last` is the last.
template <class Enum>
constexpr verdict require_one_of(Enum value, Enum last, rule broken, long long name) {
    const auto chosen = static_cast<long long>(value);
    return require(0 <= chosen && chosen <= static_cast<long long>(last), broken, name, chosen);
}

// Rows of the logical matrices that a tensor names; those of the tensor if it names none.
constexpr long long rows_of_parts(const tensor_row& tensor) {
    if (tensor.parts[0] == 0) return tensor.rows;
    count rows;
    for (const long long part : tensor.parts) {
        if (part < 0) return part;
        rows += count(part);
    }
    return rows.value();
}

// The first number that a layer states and that means nothing; a share in millionths.
constexpr verdict check_numbers(const tensor_rows& rows, const mixing_work& work, const state_size& state) {
    const auto from = [](long long least, layer_number number, long long value) {
        return require(least <= value, rule::layer_within_range, static_cast<long long>(number), value);
    };
    const auto one_of = [](layer_number number, auto value, auto last) {
        return require_one_of(value, last, rule::layer_within_range, static_cast<long long>(number));
    };
    for (const tensor_row& tensor : rows) {
        const ratio& share = tensor.active;
        // Not share.value(), which is made for fractions that are not negative.
        const double part =
            static_cast<double>(share.whole()) + static_cast<double>(share.rest()) / static_cast<double>(share.den());
        const verdict row =
            first_broken(one_of(layer_number::tensor_role, tensor.use, role::bias),
                         one_of(layer_number::tensor_scope, tensor.scope, row_scope::none),
                         one_of(layer_number::tensor_group, tensor.group, update_group::adamw),
                         one_of(layer_number::tensor_split, tensor.split, sharding::by_expert),
                         one_of(layer_number::tensor_start, tensor.start.kind, init_kind::log_step),
                         require(0 <= part && part <= 1, rule::layer_within_range,
                                 static_cast<long long>(layer_number::tensor_active), millionths(part)),
                         require(rows_of_parts(tensor) == tensor.rows, rule::layer_within_range,
                                 static_cast<long long>(layer_number::tensor_parts), rows_of_parts(tensor)));
        if (!row.ok()) return row;
    }
    return first_broken(
        from(0, layer_number::per_pair, work.per_pair), from(0, layer_number::per_row, work.per_row),
        from(0, layer_number::per_slot, work.per_slot), from(0, layer_number::window, work.window),
        from(0, layer_number::slots_read_at_most, work.slots_read_at_most), from(0, layer_number::kv_row, state.kv_row),
        from(0, layer_number::recurrent, state.recurrent), from(0, layer_number::conv_channels, state.conv_channels),
        from(1, layer_number::conv_width, state.conv_width), from(0, layer_number::slots_written, state.slots_written),
        from(0, layer_number::slot, state.slot));
}

// Sizes that a user's layer may multiply without asking for their bounds; ours ask, and are named. 0: left out.
constexpr verdict check_bounds(const Dims& d) {
    const auto bound = [](long long size, size_name name) { return size == 0 ? verdict{} : require_size(size, name); };
    return first_broken(bound(d.head_dim, size_name::head_dim), bound(d.heads, size_name::heads),
                        bound(d.kv_heads, size_name::kv_heads), bound(d.ffn, size_name::ffn),
                        bound(d.expert_ffn, size_name::expert_ffn));
}

// The width of a layer's rows, or of the layer that it wraps.
template <class L>
constexpr long long width_of(const Dims& d) {
    if constexpr (names_width<L>) {
        return L::width(d);
    } else if constexpr (requires { typename L::inner; }) {
        return width_of<typename L::inner>(d);
    } else {
        return d.width;
    }
}

// A verdict of a layer's own `check`; a rule that is not about a layer's sizes and policies is one of its own.
constexpr verdict own_verdict(verdict v) {
    const bool about_sizes = rule::size_not_positive <= v.broken && v.broken <= rule::depth_has_slots;
    if (v.ok() || v.broken == rule::parts_fit || v.broken == rule::layer_own || about_sizes) return v;
    return {rule::layer_own, 0, static_cast<long long>(v.broken)};
}

template <class L>
constexpr kind_facts facts_of(const Dims& d, bool bounded) {
    kind_facts facts;
    facts.missing = lack_of<L>::member;
    if constexpr (lack_of<L>::member == layer_member::none) {
        facts.own = own_verdict(L::check(d));
        facts.width = width_of<L>(d);
        facts.anchor = L::has_mixer && L::has_ffn && !skips_rows<L>;
        facts.waits_for_anchor = L::waits_for_anchor;
        if (facts.own.ok() && bounded) {  // sizes below are meaningless, divide by zero or overflow when a size is bad
            const mixing_work work = L::mixing(d);
            const state_size state = L::state(d);
            const tensor_rows tensors = L::tensors(d);
            facts.reads_slots = work.per_slot > 0;
            facts.slots_written = state.slots_written;
            facts.tensors = tensors.size;
            facts.numbers =
                first_broken(check_members(L::name, L::has_mixer || L::has_ffn, tensors), check_shapes(tensors),
                             check_names(tensors), check_numbers(tensors, work, state));
            if (!facts.numbers.ok()) return facts;
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

/// The first broken rule of formula type P that no layer has to be asked for.
template <pattern P>
constexpr verdict check_repeats() {
    using formula = runs_of<P>;
    if constexpr (formula::too_many) {
        return {rule::too_many_runs, 0, formula::size, formula::largest};
    } else if constexpr (count(formula::layers).overflowed()) {
        return {rule::counts_fit, 0, count::largest};
    } else {
        for (const layer_run& r : formula::runs) {
            if (r.times < 1) return {rule::repeat_of_nothing, r.first + 1, r.times};
        }
        return {};
    }
}

}  // namespace detail

/// The first broken rule of formula type P with sizes d; `verdict::ok()` if there is none. Layers count from 1.
template <pattern P>
constexpr verdict check(const Dims& d) {
    using formula = runs_of<P>;
    if (const verdict repeats = detail::check_repeats<P>(); !repeats.ok()) return repeats;
    if (const verdict ends = Ends::check(d); !ends.ok()) return ends;  // first, for every layer has the width

    const verdict bounds = detail::check_bounds(d);
    const auto facts = detail::facts_of_all(typename formula::kinds{}, d, bounds.ok());
    count elements = count(d.vocab) * count(d.width) * 2;
    long long first_beyond = 0;   // first layer at which the parameters do not fit
    long long waiting_since = 0;  // first sparse layer whose bias no anchor has cleared yet
    long long waiting = 0;
    long long first_reader = 0;
    bool reads_a_slot = false;
    count slots;  // that a position can have

    for (const layer_run& r : formula::runs) {
        const long long layer = r.first + 1;
        const detail::kind_facts& kind = facts[static_cast<std::size_t>(r.kind)];
        if (kind.missing == detail::layer_member::mixing_and_state) {
            return {rule::parts_fit, layer, static_cast<long long>(part_fault::mixer_is_an_ffn)};
        }
        if (kind.missing != detail::layer_member::none) {
            return {rule::lacks_member, layer, static_cast<long long>(kind.missing)};
        }
        if (!kind.own.ok()) return detail::at_layer(kind.own, layer);
        if (kind.tensors > tensor_rows::capacity) {
            return {rule::tensor_rows_fit, layer, kind.tensors, tensor_rows::capacity};
        }
        if (!kind.numbers.ok()) return detail::at_layer(kind.numbers, layer);
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
        if (first_beyond == 0 && elements.overflowed()) first_beyond = layer;
    }
    if (!bounds.ok()) return bounds;
    if (waiting > 0) return {rule::sparse_needs_anchor, waiting_since, waiting};
    if (first_reader != 0 && !reads_a_slot) return {rule::depth_has_slots, first_reader};
    if (first_beyond != 0) return {rule::counts_fit, first_beyond, count::largest};
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
    const auto one_of = [](run_size name, auto value, auto last) {
        return detail::require_one_of(value, last, rule::run_within_range, static_cast<long long>(name));
    };
    const verdict sizes = detail::first_broken(
        from(1, run_size::seq, r.seq), from(1, run_size::batch, r.batch), from(1, run_size::accumulate, r.accumulate),
        from(0, run_size::document, r.document), from(1, run_size::max_documents, r.max_documents),
        from(1, run_size::ranks, r.ranks), from(0, run_size::context, r.context),
        one_of(run_size::replay, r.replay, recompute::full), one_of(run_size::moments, r.moments, optimiser::muon));
    if (!sizes.ok()) return sizes;
    const count tokens = count(r.batch) * count(r.seq);
    const count step = tokens * count(r.accumulate) * count(r.ranks);
    return detail::first_broken(require(r.document <= r.seq, rule::document_within_sequence, r.document, r.seq),
                                require(tokens.value() <= largest_run_size && !step.overflowed(), rule::run_tokens_fit,
                                        tokens.value(), step.value()));
}

}  // namespace sdepth::inline v0
