// SPDX-License-Identifier: MIT
// What decoding with a model keeps, in bytes, each count exact and constexpr. Rank 4.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstddef>
#include <type_traits>

#include "sdepth/inert.hpp"
#include "sdepth/layer_counts.hpp"
#include "sdepth/model.hpp"

namespace sdepth::inline v0 {

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

namespace detail {

/// Whether these counts are real: the model broke no rule, nor did the run, and they fit.
template <class M, Run R>
inline constexpr bool has_state = std::same_as<std::remove_cvref_t<decltype(state<M, R>)>, state_counts>;

}  // namespace detail

}  // namespace sdepth::inline v0
