// SPDX-License-Identifier: MIT
// One reporter a rule: the only file with the text of compile-time errors. Rank 3.
//
// A reporter is a function template named after its rule, with the offending numbers as template arguments, so that
// every compiler prints rule, layer and numbers beside the text. It asserts and returns true: nothing follows it.
#pragma once

#include "sdepth/check.hpp"

namespace sdepth::inline v0 {

namespace explain {

template <class...>
inline constexpr bool never = false;
template <auto...>
inline constexpr bool never_value = false;

template <long long layer, class Layer, detail::layer_member member>
constexpr bool lacks_member() {
    static_assert(never<Layer>, "sdepth: not a layer: add the member named here; layer.hpp lists them all");
    return true;
}
template <long long layer, long long times>
constexpr bool repeat_of_nothing() {
    static_assert(times >= 1, "sdepth: a repeat or loop needs at least one pass: raise the count or drop the term");
    return true;
}
template <long long runs, long long largest>
constexpr bool too_many_runs() {
    static_assert(runs <= largest, "sdepth: the formula unrolls to too many runs: repeat single layers, not stacks");
    return true;
}
template <long long layer, size_name name, long long size>
constexpr bool size_not_positive() {
    static_assert(size > 0,
                  "sdepth: a size that this layer needs is missing or not positive: set it in Dims or policy");
    return true;
}
template <long long layer, long long heads, long long kv_heads>
constexpr bool kv_heads_divide_heads() {
    static_assert(never_value<heads, kv_heads>,
                  "sdepth: heads must be a multiple of kv_heads: change Dims::heads or Dims::kv_heads");
    return true;
}
template <long long layer, long long head_dim>
constexpr bool rotary_head_dim_is_even() {
    static_assert(head_dim % 2 == 0, "sdepth: rotary phases need an even head_dim: change it or set .rotary = false");
    return true;
}
template <long long layer, long long window>
constexpr bool window_is_positive() {
    static_assert(window >= 0, "sdepth: a window or slot bound must not be negative: 0 means all");
    return true;
}
template <long long layer, long long sparsity>
constexpr bool sparsity_at_least_one() {
    static_assert(sparsity >= 1, "sdepth: sparse<K> needs K of at least 1: the layer executes 1/K of the rows");
    return true;
}
template <long long layer, long long sparsity>
constexpr bool sparse_in_sparse() {
    static_assert(never_value<sparsity>, "sdepth: sparse inside sparse: multiply the two sparsities into one");
    return true;
}
template <long long layer, long long sparse_layers>
constexpr bool sparse_needs_anchor() {
    static_assert(never_value<sparse_layers>,
                  "sdepth: no anchor follows these sparse layers: add + dense, or set .clear_every or .bias = false");
    return true;
}
template <long long layer, long long sparsity>
constexpr bool full_kv_needs_attention() {
    static_assert(never_value<sparsity>, "sdepth: full keys need an attention mixer: use key_scope::selected");
    return true;
}
template <long long layer, long long per_token, long long experts>
constexpr bool experts_within_range() {
    static_assert(1 <= per_token && per_token <= experts,
                  "sdepth: experts per token must be within 1 and the number of experts");
    return true;
}
template <long long layer, long long experts>
constexpr bool top_one_not_renormalised() {
    static_assert(never_value<experts>,
                  "sdepth: one expert, renormalised, has the constant weight 1: set .renormalise = false");
    return true;
}
template <long long layer, long long experts>
constexpr bool capacity_not_negative() {
    static_assert(never_value<experts>, "sdepth: a capacity factor must not be negative: 0 means dropless");
    return true;
}
template <long long layer, long long channels, long long heads_or_groups>
constexpr bool channels_divide_heads() {
    static_assert(never_value<channels, heads_or_groups>,
                  "sdepth: channels or heads of this mixer do not divide evenly: change the policy's sizes");
    return true;
}
template <long long layer>
constexpr bool depth_has_slots() {
    static_assert(never_value<layer>,
                  "sdepth: depth attention has no earlier slot to read: put a writing layer before it");
    return true;
}
template <long long layer, long long layer_width, long long model_width>
constexpr bool widths_agree() {
    static_assert(layer_width == model_width, "sdepth: a layer's width differs from Dims::width: make them equal");
    return true;
}
template <long long sparse_layers, long long divided_by>
constexpr bool stride_gives_whole_layers() {
    static_assert(never_value<sparse_layers, divided_by>,
                  "sdepth: a planned block has stride x sparsity sparse layers: make it a positive whole number");
    return true;
}
template <long long prefix, long long active>
constexpr bool prefix_within_budget() {
    static_assert(never_value<prefix, active>,
                  "sdepth: a plan's prefix must lie within 0 and its active layers: change .prefix or .active");
    return true;
}
template <long long depth, long long divided_by>
constexpr bool active_depth_is_whole() {
    static_assert(depth >= 1 && divided_by == 1,
                  "sdepth: no model of equal active depth: make sparse layers of a kind a multiple of K");
    return true;
}
template <long long layer, long long a, long long b>
constexpr bool layer_own() {
    static_assert(never_value<a, b>, "sdepth: a layer's own check failed: see check() of that layer for the numbers");
    return true;
}
template <long long largest>
constexpr bool counts_fit() {
    static_assert(never_value<largest>, "sdepth: the parameter count does not fit 63 bits: use smaller sizes");
    return true;
}
template <class Formula>
constexpr bool not_a_formula() {
    static_assert(never<Formula>,
                  "sdepth: Model needs a formula of layers, such as dense * 4_c + sparse<8> * 8_c + dense");
    return true;
}

}  // namespace explain

namespace detail {

template <class... Ls, class F>
constexpr bool with_kind(type_list<Ls...>, F f) {
    return f.template operator()<Ls...>();
}

/// Instantiates the reporter of a broken verdict of formula type P; true either way, so the gate adds no second error.
template <class P, rule broken, long long layer, long long a, long long b>
constexpr bool report() {
    using namespace explain;
    if constexpr (broken == rule::lacks_member) {
        using kinds = typename runs_of<P>::kinds;
        return with_kind(kinds{}, []<class... Ls>() {
            return explain::lacks_member<layer, nth<static_cast<std::size_t>(a), Ls...>,
                                         static_cast<layer_member>(b)>();
        });
    } else if constexpr (broken == rule::repeat_of_nothing) {
        return repeat_of_nothing<layer, a>();
    } else if constexpr (broken == rule::too_many_runs) {
        return too_many_runs<a, b>();
    } else if constexpr (broken == rule::size_not_positive) {
        return size_not_positive<layer, static_cast<size_name>(a), b>();
    } else if constexpr (broken == rule::kv_heads_divide_heads) {
        return kv_heads_divide_heads<layer, a, b>();
    } else if constexpr (broken == rule::rotary_head_dim_is_even) {
        return rotary_head_dim_is_even<layer, a>();
    } else if constexpr (broken == rule::window_is_positive) {
        return window_is_positive<layer, a>();
    } else if constexpr (broken == rule::sparsity_at_least_one) {
        return sparsity_at_least_one<layer, a>();
    } else if constexpr (broken == rule::sparse_in_sparse) {
        return sparse_in_sparse<layer, a>();
    } else if constexpr (broken == rule::sparse_needs_anchor) {
        return sparse_needs_anchor<layer, a>();
    } else if constexpr (broken == rule::full_kv_needs_attention) {
        return full_kv_needs_attention<layer, a>();
    } else if constexpr (broken == rule::experts_within_range) {
        return experts_within_range<layer, a, b>();
    } else if constexpr (broken == rule::top_one_not_renormalised) {
        return top_one_not_renormalised<layer, a>();
    } else if constexpr (broken == rule::capacity_not_negative) {
        return capacity_not_negative<layer, a>();
    } else if constexpr (broken == rule::channels_divide_heads) {
        return channels_divide_heads<layer, a, b>();
    } else if constexpr (broken == rule::depth_has_slots) {
        return depth_has_slots<layer>();
    } else if constexpr (broken == rule::widths_agree) {
        return widths_agree<layer, a, b>();
    } else if constexpr (broken == rule::stride_gives_whole_layers) {
        return stride_gives_whole_layers<a, b>();
    } else if constexpr (broken == rule::prefix_within_budget) {
        return prefix_within_budget<a, b>();
    } else if constexpr (broken == rule::active_depth_is_whole) {
        return active_depth_is_whole<a, b>();
    } else if constexpr (broken == rule::layer_own) {
        return layer_own<layer, a, b>();
    } else if constexpr (broken == rule::counts_fit) {
        return counts_fit<a>();
    } else {
        static_assert(broken == rule::none, "sdepth: a rule without a reporter");
        return true;
    }
}

}  // namespace detail

}  // namespace sdepth::inline v0
