// SPDX-License-Identifier: MIT
// A layer as two independent axes, a mixer and a feed-forward part, with its norms; and the dense words. Rank 2.
#pragma once

#include <string_view>
#include <type_traits>

#include "sdepth/layer.hpp"
#include "sdepth/layers/attention.hpp"
#include "sdepth/layers/ffn.hpp"
#include "sdepth/slips.hpp"

namespace sdepth::inline v0 {

/// Whether a part normalises its input (x + f(norm x)) or its output (x + norm f(x), OLMo 2).
enum class norm_place { pre, post };

constexpr std::string_view name_of(norm_place place) { return place == norm_place::pre ? "pre" : "post"; }

struct block_policy {
    norm_place norm = norm_place::pre;
    double norm_epsilon = 1e-6;

    friend constexpr bool operator==(const block_policy&, const block_policy&) = default;
};

namespace detail {

// A mixer has all members of a feed-forward part and more, so only its `mixing` tells the two apart.
template <class Mixer, class Ffn>
constexpr part_fault fault_of_parts() {
    constexpr bool no_ffn = std::is_same_v<Ffn, None>;
    if (std::is_same_v<Mixer, None> && no_ffn) return part_fault::both_are_none;
    if (std::is_base_of_v<layer_base, Mixer> || std::is_base_of_v<layer_base, Ffn>) return part_fault::part_is_a_layer;
    if constexpr (requires { Mixer::writes_ffn_slot; }) {
        if (no_ffn && Mixer::writes_ffn_slot) return part_fault::ffn_slot_without_ffn;
    }
    return !no_ffn && requires(Dims d) { Ffn::mixing(d); }
    ? part_fault::ffn_is_a_mixer : part_fault::none;
}

}  // namespace detail

/// x += mixer(norm x); x += ffn(norm x). One part may be `None`.
template <class Mixer, class Ffn, block_policy P = block_policy{}>
struct Block : layer_base {
    using mixer = Mixer;
    using ffn = Ffn;
    static constexpr block_policy policy = P;
    static constexpr bool has_mixer = !std::is_same_v<Mixer, None>;
    static constexpr bool has_ffn = !std::is_same_v<Ffn, None>;
    static constexpr bool causal = detail::says_causal<Mixer> && detail::says_causal<Ffn>;
    static constexpr std::string_view name = "block";

    static constexpr tensor_rows tensors(const Dims& d) {
        constexpr bool pre = policy.norm == norm_place::pre;
        tensor_rows rows;
        if (has_mixer) {
            rows.add(vector(pre ? "input_layernorm.weight" : "post_attention_layernorm.weight", role::norm, d.width,
                            {init_kind::ones, 1}));
            rows.add(Mixer::tensors(d));
        }
        if (has_ffn) {
            rows.add(vector(pre ? "post_attention_layernorm.weight" : "post_feedforward_layernorm.weight", role::norm,
                            d.width, {init_kind::ones, 1}));
            rows.add(Ffn::tensors(d));
        }
        return rows;
    }
    static constexpr mixing_work mixing(const Dims& d) { return Mixer::mixing(d); }
    static constexpr state_size state(const Dims& d) { return Mixer::state(d); }
    static constexpr verdict check(const Dims& d) {
        constexpr part_fault fault = detail::fault_of_parts<Mixer, Ffn>();
        return detail::first_broken(
            detail::require(fault == part_fault::none, rule::parts_fit, static_cast<long long>(fault)), Mixer::check(d),
            Ffn::check(d), detail::require_choice(policy_name::norm, policy.norm, norm_place::post),
            detail::require_positive(policy_name::norm_epsilon, policy.norm_epsilon));
    }

    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        sink.function("mixer", Mixer::name);
        Mixer::describe(sink, d);
        sink.function("ffn", Ffn::name);
        Ffn::describe(sink, d);
        sink.function("norm", name_of(policy.norm));
        sink.function("norm epsilon", policy.norm_epsilon);
    }

    /// A slip: `moe<4, 2>(dense)`.
    template <class... Ts>
    constexpr broken_formula operator()(Ts...) const {
        return detail::wrapped_by_a_block<Block, Ts...>();
    }
};

/// A layer of two chosen parts: `layer<Mamba2<>, Experts<16, 2>> * 3_c`.
template <class Mixer, class Ffn, block_policy P = block_policy{}>
inline constexpr Block<Mixer, Ffn, detail::evaluated(P)> layer{};

using Dense = Block<Attention<>, SwiGLU<>>;

/// Attention and SwiGLU, pre-norm, QK-norm per head, rotary: the Qwen3 block.
inline constexpr Dense dense{};
inline constexpr Block<Attention<>, None> attention_only{};
inline constexpr Block<None, SwiGLU<>> ffn_only{};

}  // namespace sdepth::inline v0
