// SPDX-License-Identifier: MIT
// Dense feed-forward parts, and `None`, the empty mixer or feed-forward part. Rank 2.
#pragma once

#include <string_view>

#include "sdepth/choices.hpp"
#include "sdepth/layer.hpp"

namespace sdepth::inline v0 {

/// The empty axis: a layer without a mixer, or without a feed-forward part.
struct None {
    static constexpr std::string_view name = "none";
    static constexpr bool causal = true;

    static constexpr tensor_rows tensors(const Dims&) { return tensor_rows{}; }
    static constexpr mixing_work mixing(const Dims&) { return {}; }
    static constexpr state_size state(const Dims&) { return {}; }
    static constexpr verdict check(const Dims&) { return {}; }
    template <class Sink>
    static constexpr void describe(Sink&, const Dims&) {}
};

struct ffn_policy {
    bool biases = false;

    friend constexpr bool operator==(const ffn_policy&, const ffn_policy&) = default;
};

/// W_down (silu(W_gate x) * W_up x), 3 d F weights. Source: Shazeer 2020.
template <ffn_policy P = ffn_policy{}>
struct SwiGLU {
    static constexpr ffn_policy policy = P;
    static constexpr std::string_view name = "swiglu";
    static constexpr bool causal = true;

    static constexpr tensor_rows tensors(const Dims& d) {
        tensor_rows rows;
        rows.add(matrix("mlp.gate_proj.weight", role::gate, d.ffn, d.width));
        rows.add(matrix("mlp.up_proj.weight", role::up, d.ffn, d.width));
        rows.add(matrix("mlp.down_proj.weight", role::down, d.width, d.ffn));
        if (policy.biases) {
            rows.add(vector("mlp.gate_proj.bias", role::bias, d.ffn, {init_kind::zeros, 0}));
            rows.add(vector("mlp.up_proj.bias", role::bias, d.ffn, {init_kind::zeros, 0}));
            rows.add(vector("mlp.down_proj.bias", role::bias, d.width, {init_kind::zeros, 0}));
        }
        return rows;
    }
    static constexpr verdict check(const Dims& d) { return detail::require_size(d.ffn, size_name::ffn); }
    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        sink.function("activation", "silu gate");
        sink.function("ffn width", d.ffn);
        sink.function("ffn biases", policy.biases);
    }
};

/// W_down act(W_up x), 2 d F weights.
template <activation A = activation::gelu, ffn_policy P = ffn_policy{}>
struct MLP {
    static constexpr ffn_policy policy = P;
    static constexpr std::string_view name = "mlp";
    static constexpr bool causal = true;

    static constexpr tensor_rows tensors(const Dims& d) {
        tensor_rows rows;
        rows.add(matrix("mlp.up_proj.weight", role::up, d.ffn, d.width));
        rows.add(matrix("mlp.down_proj.weight", role::down, d.width, d.ffn));
        if (policy.biases) {
            rows.add(vector("mlp.up_proj.bias", role::bias, d.ffn, {init_kind::zeros, 0}));
            rows.add(vector("mlp.down_proj.bias", role::bias, d.width, {init_kind::zeros, 0}));
        }
        return rows;
    }
    static constexpr verdict check(const Dims& d) {
        return detail::first_broken(detail::require_size(d.ffn, size_name::ffn),
                                    detail::require_choice(policy_name::activation, A, activation::silu));
    }
    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        sink.function("activation", name_of(A));
        sink.function("ffn width", d.ffn);
        sink.function("ffn biases", policy.biases);
    }
};

}  // namespace sdepth::inline v0
