// SPDX-License-Identifier: MIT
// The rules that a formula can break, as data. `check.hpp` finds the first broken one, `explain.hpp` words it. Rank 1.
#pragma once

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

/// One entry a rule; `docs/diagnostics.md` has one section for each, by the same name.
enum class rule {
    none,
    not_a_formula,              ///< Model of something else than layers joined by + and *
    lacks_member,               ///< a layer type lacks a member of `layer.hpp`
    parts_fit,                  ///< a block whose parts are not one mixer and one feed-forward part
    repeat_of_nothing,          ///< a repeat or loop of less than one
    too_many_runs,              ///< the formula unrolls to more runs than can be walked
    size_not_positive,          ///< a size that a layer needs is missing or not positive
    kv_heads_divide_heads,      ///< query heads are not a multiple of key and value heads
    rotary_head_dim_is_even,    ///< rotary phases pair the elements of a head
    window_not_negative,        ///< an attention window below zero
    sparsity_at_least_one,      ///< K below 1
    sparse_in_sparse,           ///< a sparse layer wraps a sparse layer
    sparse_needs_anchor,        ///< sparse layers that no anchor follows, with a bias that only anchors clear
    full_kv_needs_attention,    ///< full-KV context around a mixer that has no keys
    experts_within_range,       ///< experts per token not within 1..E
    top_one_not_renormalised,   ///< one expert with a renormalised weight: the weight is the constant 1
    capacity_not_negative,      ///< a capacity factor below zero
    channels_divide_heads,      ///< channels of a recurrent mixer are not a multiple of its heads or groups
    depth_has_slots,            ///< depth attention that no earlier layer writes slots for
    widths_agree,               ///< a layer of another width than the model's
    stride_gives_whole_layers,  ///< a planned block of A K sparse layers, where A K is not a positive whole number
    prefix_within_budget,       ///< a plan whose prefix is negative or more than its active layers
    active_depth_is_whole,      ///< a partner of equal active depth, where that depth is a fraction
    layer_own,                  ///< a rule of a user's layer
    non_causal_router,          ///< a router that sees the future, where evaluation must not
    counts_fit,                 ///< a count does not fit 63 bits
};

/// Names a size of `Dims` or of a policy, in `rule::size_not_positive`.
enum class size_name { width, head_dim, heads, kv_heads, ffn, expert_ffn, vocab, state, conv, expand, shared_ffn };

/// What is wrong with the parts of a block, in `rule::parts_fit`.
enum class part_fault { none, ffn_is_a_mixer, part_is_a_layer, both_are_none };

/// The first broken rule, or none. `layer` counts from 1 in the unrolled stack, 0 = not about a layer; a and b are the
/// offending numbers in the order in which the rule's reporter names them.
struct verdict {
    rule broken = rule::none;
    long long layer = 0;
    long long a = 0;
    long long b = 0;

    constexpr bool ok() const { return broken == rule::none; }
};

namespace detail {

// The first broken verdict of several.
constexpr verdict first_broken(verdict v) { return v; }
template <class... Rest>
constexpr verdict first_broken(verdict v, Rest... rest) {
    return v.ok() ? first_broken(rest...) : v;
}

constexpr verdict require(bool holds, rule broken, long long a = 0, long long b = 0) {
    return holds ? verdict{} : verdict{broken, 0, a, b};
}

constexpr verdict require_size(long long size, size_name name) {
    return require(size > 0, rule::size_not_positive, static_cast<long long>(name), size);
}

}  // namespace detail

}  // namespace sdepth::inline v0
