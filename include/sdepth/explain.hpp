// SPDX-License-Identifier: MIT
// One reporter a rule, with its text; slips in the spelling of a formula have theirs in `slips.hpp`. Rank 3.
//
// A reporter is a function template named after its rule, with the offending numbers as template arguments, so that
// every compiler prints rule, layer and numbers beside the text. It asserts and returns true: nothing follows it.
#pragma once

#include "sdepth/check.hpp"
#include "sdepth/constant_members.hpp"

namespace sdepth::inline v0 {

namespace explain {

// Always false; clang prints these arguments beside the text.
template <auto...>
inline constexpr bool holds = false;
template <class...>
inline constexpr bool holds_for = false;

template <long long layer>
constexpr bool not_a_formula() {
    static_assert(holds<layer>,
                  "sdepth: Model needs a formula: layers, each derived from layer_base, joined by + and *");
    return true;
}
template <long long layer, class Layer, detail::layer_member member>
constexpr bool lacks_member() {
    static_assert(holds_for<Layer>,
                  "sdepth: not a layer: this type needs the member or public base named here: see layer.hpp");
    return true;
}
template <long long layer, class Layer, detail::layer_member member>
constexpr bool member_is_constant() {
    static_assert(holds_for<Layer>,
                  "sdepth: the layer's member named here is not constant: make it static constexpr, without x / 0");
    return true;
}
template <long long layer, part_fault fault>
constexpr bool parts_fit() {
    static_assert(fault == part_fault::none,
                  "sdepth: layer<Mixer, Ffn> takes one mixer and one feed-forward part, of which one may be None");
    return true;
}
template <long long layer, class Layer, long long tensors, long long largest>
constexpr bool tensor_rows_fit() {
    static_assert(holds_for<Layer>, "sdepth: a layer has more tensors than tensor_rows holds: split it, or fuse some");
    return true;
}
template <long long layer, class Layer, long long row, long long extent>
constexpr bool tensor_has_elements() {
    static_assert(holds_for<Layer>,
                  "sdepth: a tensor row needs rows and copies from 1, and cols from 0: mend tensors() of this layer");
    return true;
}
template <long long layer, class Layer, long long tensor, long long other>
constexpr bool tensor_names_differ() {
    static_assert(holds_for<Layer>,
                  "sdepth: each tensor of a layer needs a name of its own, with {e} for its copies: mend tensors()");
    return true;
}
template <long long layer, class Layer, detail::layer_member member>
constexpr bool layer_members_agree() {
    static_assert(holds_for<Layer>,
                  "sdepth: a layer needs a name, and one with matrices has a mixer or a feed-forward part: mend it");
    return true;
}
template <long long layer, class Layer, layer_number number, long long value>
constexpr bool layer_within_range() {
    static_assert(holds_for<Layer>,
                  "sdepth: this number of a layer's tensors, mixing or state is out of range: see docs/diagnostics.md");
    return true;
}
template <long long layer, long long times>
constexpr bool repeat_of_nothing() {
    static_assert(holds<layer, times>,
                  "sdepth: a repeat or loop needs at least one pass: raise the count or drop the term");
    return true;
}
template <long long runs, long long largest>
constexpr bool too_many_runs() {
    static_assert(holds<runs, largest>,
                  "sdepth: the formula unrolls to too many runs: repeat single layers, not stacks");
    return true;
}
template <long long layer, size_name size, long long value>
constexpr bool size_not_positive() {
    static_assert(holds<layer, size, value>,
                  "sdepth: this size must be positive: set it in Dims or in the policy of the layer");
    return true;
}
template <long long layer, size_name size, long long value, long long largest>
constexpr bool size_too_large() {
    static_assert(holds<layer, size, value, largest>,
                  "sdepth: this size is larger than the largest one shown: lower it in Dims or in the layer's policy");
    return true;
}
template <long long layer, long long heads, long long kv_heads>
constexpr bool kv_heads_divide_heads() {
    static_assert(holds<layer, heads, kv_heads>,
                  "sdepth: heads must be a multiple of kv_heads: change Dims::heads or Dims::kv_heads");
    return true;
}
template <long long layer, long long head_dim>
constexpr bool rotary_head_dim_is_even() {
    static_assert(holds<layer, head_dim>,
                  "sdepth: rotary phases need an even head_dim: change it or set .rotary = false");
    return true;
}
template <long long layer, long long window>
constexpr bool window_not_negative() {
    static_assert(holds<layer, window>, "sdepth: a window or slot bound must not be negative: 0 means all");
    return true;
}
template <long long layer, policy_name policy, long long millionths>
constexpr bool policy_within_range() {
    static_assert(holds<layer, policy, millionths>,
                  "sdepth: this number or choice of a policy is out of its range: docs/diagnostics.md has the ranges");
    return true;
}
template <long long layer, long long sparsity>
constexpr bool sparsity_at_least_one() {
    static_assert(holds<layer, sparsity>,
                  "sdepth: sparse<K> needs K of at least 1: the layer executes 1/K of the rows");
    return true;
}
template <long long layer, long long outer, long long inner>
constexpr bool sparse_in_sparse() {
    static_assert(holds<layer, outer, inner>, "sdepth: sparse inside sparse: multiply the two sparsities into one");
    return true;
}
template <long long layer, long long sparse_layers>
constexpr bool sparse_needs_anchor() {
    static_assert(holds<layer, sparse_layers>,
                  "sdepth: no anchor follows these sparse layers: add + dense, or set .clear_every or .bias = false");
    return true;
}
template <long long layer, long long sparsity>
constexpr bool full_kv_needs_attention() {
    static_assert(holds<layer, sparsity>, "sdepth: full keys need an attention mixer: use key_scope::selected");
    return true;
}
template <long long layer, long long per_token, long long experts>
constexpr bool experts_within_range() {
    static_assert(holds<layer, per_token, experts>,
                  "sdepth: experts per token must be within 1 and the number of experts");
    return true;
}
template <long long layer, long long experts>
constexpr bool top_one_not_renormalised() {
    static_assert(holds<layer, experts>,
                  "sdepth: one expert, renormalised, has the constant weight 1: set .renormalise = false");
    return true;
}
template <long long layer, long long channels, long long parts>
constexpr bool channels_divide_heads() {
    static_assert(holds<layer, channels, parts>,
                  "sdepth: channels must divide evenly into heads, and heads into groups: change the policy's sizes");
    return true;
}
template <long long layer>
constexpr bool depth_has_slots() {
    static_assert(holds<layer>, "sdepth: depth attention has no earlier slot to read: put a writing layer before it");
    return true;
}
template <long long layer, long long layer_width, long long model_width>
constexpr bool widths_agree() {
    static_assert(holds<layer, layer_width, model_width>,
                  "sdepth: the width of this layer must be Dims::width: make them equal");
    return true;
}
template <long long sparse_layers, long long divided_by>
constexpr bool stride_gives_whole_layers() {
    static_assert(holds<sparse_layers, divided_by>,
                  "sdepth: a planned block has stride x sparsity sparse layers: make it a positive whole number");
    return true;
}
template <long long prefix, long long active>
constexpr bool prefix_within_budget() {
    static_assert(holds<prefix, active>,
                  "sdepth: a plan's prefix must lie within 0 and its active layers: change .prefix or .active");
    return true;
}
template <long long depth, long long divided_by>
constexpr bool active_depth_is_whole() {
    static_assert(depth >= 1 && divided_by == 1,
                  "sdepth: no model of equal active depth: make sparse layers of a kind a multiple of K");
    return true;
}
template <long long layer, class Layer, long long a, long long b>
constexpr bool layer_own() {
    static_assert(holds_for<Layer>, "sdepth: a layer's own check failed: see check() of the type named here");
    return true;
}
template <long long layer, long long such_layers>
constexpr bool non_causal_router() {
    static_assert(holds<layer, such_layers>,
                  "sdepth: this layer's router sees the future: causal evaluation needs expert_choice::by_token");
    return true;
}
template <long long layer, long long largest>
constexpr bool counts_fit() {
    static_assert(holds<layer, largest>,
                  "sdepth: the parameters up to this layer do not fit 63 bits: use smaller sizes or fewer layers");
    return true;
}
template <long long kinds>
constexpr bool shares_fit() {
    static_assert(holds<kinds>,
                  "sdepth: so many unlike sparsities or expert shares have no common denominator: use multiples");
    return true;
}
template <long long seq>
constexpr bool flops_fit() {
    static_assert(holds<seq>,
                  "sdepth: the FLOPs do not fit 63 bits: use a shorter Run::seq, smaller sizes or fewer layers");
    return true;
}
template <long long seq>
constexpr bool state_fits() {
    static_assert(holds<seq>,
                  "sdepth: the state does not fit 63 bits: use a shorter Run::seq, smaller states or fewer layers");
    return true;
}
template <long long batch, long long seq>
constexpr bool plan_fits() {
    static_assert(holds<batch, seq>,
                  "sdepth: the plan's bytes do not fit 63 bits: use a smaller Run::batch or Run::seq");
    return true;
}
template <run_size size, long long value>
constexpr bool run_within_range() {
    static_assert(holds<size, value>,
                  "sdepth: this size of a Run must be from 1, document and context from 0, to 2^30; replay and moments "
                  "enumerators");
    return true;
}
template <long long document, long long seq>
constexpr bool document_within_sequence() {
    static_assert(holds<document, seq>,
                  "sdepth: Run::document is longer than Run::seq: shorten it, or use 0 for one document a sequence");
    return true;
}
template <long long micro_batch, long long step>
constexpr bool run_tokens_fit() {
    static_assert(holds<micro_batch, step>,
                  "sdepth: too many tokens: a micro-batch holds at most 2^30, a step fits 63 bits: lower Run::batch");
    return true;
}

}  // namespace explain

namespace detail {

// Rules whose error shows the type of the layer.
constexpr bool shows_layer(rule broken) {
    using enum rule;
    return broken == lacks_member || broken == member_is_constant || broken == tensor_rows_fit ||
           broken == tensor_has_elements || broken == tensor_names_differ || broken == layer_members_agree ||
           broken == layer_within_range || broken == layer_own;
}

/// The layer type at a position of formula type P, counted from 1, for the rules that show it, or the inner layer or
/// part that has the fault; else void.
template <class P, class Sizes, rule broken, long long layer>
struct culprit : std::type_identity<void> {};
template <class P, class Sizes, rule broken, long long layer>
requires(shows_layer(broken)) struct culprit<P, Sizes, broken, layer> {
    static constexpr std::size_t kind = [] {
        for (const layer_run& r : runs_of<P>::runs) {
            if (layer <= r.first + r.times) return static_cast<std::size_t>(r.kind);
        }
        return std::size_t{0};
    }();
    static constexpr auto find() {
        using at = typename element<kind, typename runs_of<P>::kinds>::type;
        if constexpr (broken == rule::lacks_member) {
            return std::type_identity<typename lack_of<at>::type>{};
        } else if constexpr (broken == rule::member_is_constant) {
            return std::type_identity<typename inconstant_of<at, Sizes>::type>{};
        } else {
            return std::type_identity<at>{};
        }
    }
    using type = typename decltype(find())::type;
};

/// Instantiates the reporter of a broken verdict; true either way, so that the gate adds no second error. It takes
/// numbers and no formula: compilers print every argument.
template <rule broken, long long layer, long long a, long long b, class Layer>
constexpr bool report() {
    using namespace explain;
    if constexpr (broken == rule::not_a_formula) {
        return not_a_formula<layer>();
    } else if constexpr (broken == rule::lacks_member) {
        return lacks_member<layer, Layer, static_cast<layer_member>(a)>();
    } else if constexpr (broken == rule::member_is_constant) {
        return member_is_constant<layer, Layer, static_cast<layer_member>(a)>();
    } else if constexpr (broken == rule::parts_fit) {
        return parts_fit<layer, static_cast<part_fault>(a)>();
    } else if constexpr (broken == rule::tensor_rows_fit) {
        return tensor_rows_fit<layer, Layer, a, b>();
    } else if constexpr (broken == rule::tensor_has_elements) {
        return tensor_has_elements<layer, Layer, a, b>();
    } else if constexpr (broken == rule::tensor_names_differ) {
        return tensor_names_differ<layer, Layer, a, b>();
    } else if constexpr (broken == rule::layer_members_agree) {
        return layer_members_agree<layer, Layer, static_cast<layer_member>(a)>();
    } else if constexpr (broken == rule::layer_within_range) {
        return layer_within_range<layer, Layer, static_cast<layer_number>(a), b>();
    } else if constexpr (broken == rule::repeat_of_nothing) {
        return repeat_of_nothing<layer, a>();
    } else if constexpr (broken == rule::too_many_runs) {
        return too_many_runs<a, b>();
    } else if constexpr (broken == rule::size_not_positive) {
        return size_not_positive<layer, static_cast<size_name>(a), b>();
    } else if constexpr (broken == rule::size_too_large) {
        return size_too_large<layer, static_cast<size_name>(a), b, largest_size(static_cast<size_name>(a))>();
    } else if constexpr (broken == rule::kv_heads_divide_heads) {
        return kv_heads_divide_heads<layer, a, b>();
    } else if constexpr (broken == rule::rotary_head_dim_is_even) {
        return rotary_head_dim_is_even<layer, a>();
    } else if constexpr (broken == rule::window_not_negative) {
        return window_not_negative<layer, a>();
    } else if constexpr (broken == rule::policy_within_range) {
        return policy_within_range<layer, static_cast<policy_name>(a), b>();
    } else if constexpr (broken == rule::sparsity_at_least_one) {
        return sparsity_at_least_one<layer, a>();
    } else if constexpr (broken == rule::sparse_in_sparse) {
        return sparse_in_sparse<layer, a, b>();
    } else if constexpr (broken == rule::sparse_needs_anchor) {
        return sparse_needs_anchor<layer, a>();
    } else if constexpr (broken == rule::full_kv_needs_attention) {
        return full_kv_needs_attention<layer, a>();
    } else if constexpr (broken == rule::experts_within_range) {
        return experts_within_range<layer, a, b>();
    } else if constexpr (broken == rule::top_one_not_renormalised) {
        return top_one_not_renormalised<layer, a>();
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
        return layer_own<layer, Layer, a, b>();
    } else if constexpr (broken == rule::non_causal_router) {
        return non_causal_router<layer, a>();
    } else if constexpr (broken == rule::counts_fit) {
        return counts_fit<layer, a>();
    } else if constexpr (broken == rule::shares_fit) {
        return shares_fit<a>();
    } else if constexpr (broken == rule::flops_fit) {
        return flops_fit<a>();
    } else if constexpr (broken == rule::state_fits) {
        return state_fits<a>();
    } else if constexpr (broken == rule::plan_fits) {
        return plan_fits<a, b>();
    } else if constexpr (broken == rule::run_within_range) {
        return run_within_range<static_cast<run_size>(a), b>();
    } else if constexpr (broken == rule::document_within_sequence) {
        return document_within_sequence<a, b>();
    } else if constexpr (broken == rule::run_tokens_fit) {
        return run_tokens_fit<a, b>();
    } else {
        static_assert(broken == rule::none, "sdepth: a rule without a reporter");
        return true;
    }
}

/// Reports a broken verdict that is about no layer; whether it is good.
template <rule broken, long long a, long long b>
constexpr bool accepted() {
    return report<broken, 0, a, b, void>() && broken == rule::none;
}

}  // namespace detail

}  // namespace sdepth::inline v0
