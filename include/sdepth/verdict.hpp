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
    member_is_constant,         ///< a member of a layer type that no constant can be made of
    parts_fit,                  ///< a block whose parts are not one mixer and one feed-forward part
    tensor_rows_fit,            ///< a layer of more tensors than `tensor_rows` holds
    tensor_has_elements,        ///< a tensor row without rows or copies, or with negative columns
    tensor_names_differ,        ///< two tensors of a layer with one name, or one without a name
    layer_members_agree,        ///< a layer without a name, or one of matrices that is neither mixer nor feed-forward
    layer_within_range,         ///< a number of a tensor row, of `mixing_work` or of `state_size` that means nothing
    repeat_of_nothing,          ///< a repeat or loop of less than one
    too_many_runs,              ///< the formula unrolls to more runs than can be walked
    size_not_positive,          ///< a size that a layer needs is missing or not positive
    size_too_large,             ///< a size beyond `largest_size`
    kv_heads_divide_heads,      ///< query heads are not a multiple of key and value heads
    rotary_head_dim_is_even,    ///< rotary phases pair the elements of a head
    window_not_negative,        ///< an attention window, or a bound on slots, below zero
    policy_within_range,        ///< a number or a choice in a policy outside of what it can mean
    sparsity_at_least_one,      ///< K below 1
    sparse_in_sparse,           ///< a sparse layer wraps a sparse layer
    sparse_needs_anchor,        ///< sparse layers that no anchor follows, with a bias that only anchors clear
    full_kv_needs_attention,    ///< full-KV context around a mixer that has no keys
    experts_within_range,       ///< experts per token not within 1..E
    top_one_not_renormalised,   ///< one expert with a renormalised weight: the weight is the constant 1
    channels_divide_heads,      ///< channels of a recurrent mixer are not a multiple of its heads or groups
    depth_has_slots,            ///< depth attention that no earlier layer writes slots for
    widths_agree,               ///< a layer of another width than the model's
    stride_gives_whole_layers,  ///< a planned block of A K sparse layers, where A K is not a positive whole number
    prefix_within_budget,       ///< a plan whose prefix is negative or more than its active layers
    active_depth_is_whole,      ///< a partner of equal active depth, where that depth is a fraction
    layer_own,                  ///< a rule of a user's layer
    non_causal_router,          ///< a router that sees the future, where evaluation must not
    counts_fit,                 ///< a count of parameters or layers does not fit 63 bits
    shares_fit,                 ///< a sum of 1/K and k/E of many layer kinds needs a denominator beyond 63 bits
    flops_fit,                  ///< a count of FLOPs does not fit 63 bits
    state_fits,                 ///< a count of decoding state does not fit 63 bits
    plan_fits,                  ///< a count of memory does not fit 63 bits
    run_within_range,           ///< a size of a run that is missing, negative or too large
    document_within_sequence,   ///< documents longer than the sequence that holds them
    run_tokens_fit,             ///< more tokens in a micro-batch or a step than can be numbered
};

/// Names a size of `Run`, in `rule::run_within_range`.
enum class run_size { seq, batch, accumulate, document, max_documents, ranks, context, replay, moments };

/// Names a size of `Dims` or of a policy, in `rule::size_not_positive` and `rule::size_too_large`.
enum class size_name {
    width,
    head_dim,
    heads,
    kv_heads,
    ffn,
    expert_ffn,
    vocab,
    state,
    conv,
    expand,
    groups,
    key_dim,
    value_dim,
    value_heads,
    step_rank,
    experts,
    shared_experts,
    shared_ffn,
    sparsity,
    window,
    slots
};

/// The largest value of a size. Sizes of which a layer multiplies up to three have at most 20 bits, so that the product
/// fits 63; the others 30, for they count rows that a kernel indexes by int.
constexpr long long largest_size(size_name size) {
    using enum size_name;
    const bool long_one = size == ffn || size == expert_ffn || size == shared_ffn || size == vocab || size == experts ||
                          size == shared_experts || size == sparsity || size == window || size == slots;
    return long_one ? 1LL << 30 : 1LL << 20;
}

/// Names a number of a policy, in `rule::policy_within_range`.
enum class policy_name {
    norm_epsilon,
    rotary_base,
    epsilon,
    tau,
    increment,
    scale_start,
    clear_every,
    loss_weight,
    cut_rate,
    router_rate,
    shared,
    weight_scale,
    capacity,
    steering_step,
    z_loss_weight,
    // Choices: their number is that of the enumerator.
    norm,
    activation,
    map,
    score,
    order,
    choice,
    loss,
    excess,
    gate,
    cut,
    gate_logit,
    loss_logit,
    scope,
    keys,
    attention
};

/// Names a number that a layer states, in `rule::layer_within_range`.
enum class layer_number {
    tensor_role,
    tensor_scope,
    tensor_group,
    tensor_split,
    tensor_start,
    tensor_active,
    tensor_parts,
    per_pair,
    per_row,
    per_slot,
    window,
    slots_read_at_most,
    kv_row,
    recurrent,
    conv_channels,
    conv_width,
    slots_written,
    slot
};

/// What is wrong with the parts of a block, in `rule::parts_fit`.
enum class part_fault { none, ffn_is_a_mixer, part_is_a_layer, both_are_none, ffn_slot_without_ffn, mixer_is_an_ffn };

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

// A size that may be left out, or 0.
constexpr verdict require_bound(long long size, size_name name) {
    return require(size <= largest_size(name), rule::size_too_large, static_cast<long long>(name), size);
}
constexpr verdict require_size(long long size, size_name name) {
    return first_broken(require(size > 0, rule::size_not_positive, static_cast<long long>(name), size),
                        require_bound(size, name));
}

// Whether so many parts divide a whole. A function, or compilers warn of sizes that a verdict refuses.
constexpr bool divides(long long parts, long long whole) { return parts > 0 && whole % parts == 0; }

// A number as millionths: what an error can show of it, for clang 14 takes no floating template argument.
constexpr long long millionths(double value) {
    if (value != value) return -1;
    constexpr double most = 9e12;
    return static_cast<long long>((value > most ? most : value < -most ? -most : value) * 1e6);
}
constexpr verdict require_policy(bool holds, policy_name name, double value) {
    return require(holds, rule::policy_within_range, static_cast<long long>(name), millionths(value));
}
// least <= value <= most. Not a number is in no range, and is asked for first: nvcc 13 orders none in a constant.
constexpr verdict require_between(double least, double most, policy_name name, double value) {
    return require_policy(value == value && least <= value && value <= most, name, value);
}
constexpr verdict require_up_to(double most, policy_name name, double value) {
    return require_between(0, most, name, value);
}
inline constexpr double largest_policy = 1e300;  // finite, whatever it is scaled by
constexpr verdict require_not_negative(policy_name name, double value) {
    return require_up_to(largest_policy, name, value);
}
constexpr verdict require_positive(policy_name name, double value) {
    return require_policy(value == value && 0 < value && value <= largest_policy, name, value);
}

// A cast makes a choice of any number: one of the enumerators, of which the last is given.
template <class Choice>
constexpr verdict require_choice(policy_name name, Choice value, Choice last) {
    return require_up_to(static_cast<double>(last), name, static_cast<double>(value));
}

}  // namespace detail

}  // namespace sdepth::inline v0
