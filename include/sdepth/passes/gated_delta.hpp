// SPDX-License-Identifier: MIT
// Forward and backward of the gated delta rule as backend operations. Rank 5.
#pragma once

#include "sdepth/layers/gated_delta.hpp"
#include "sdepth/passes/attention.hpp"
#include "sdepth/passes/recurrent.hpp"

namespace sdepth::inline v0 {

template <gated_delta_policy P>
struct mixer_pass<GatedDelta<P>> {
    static constexpr gated_delta_policy policy = P;
    using mixer = GatedDelta<P>;
    static constexpr long long keys(const Dims& d) { return mixer::heads(d) * mixer::key_dim(d); }
    static constexpr long long values(const Dims& d) { return mixer::value_heads(d) * mixer::value_dim(d); }

    /// Kept from forward to backward; a backward needs as much again for the gradients.
    template <class B>
    struct saved {
        using activation = typename B::precision::activation;
        activation* q_raw = nullptr;     // [rows, n, a], before the convolution
        activation* k_raw = nullptr;     // [rows, n, a]
        activation* v_raw = nullptr;     // [rows, m, b]
        activation* q = nullptr;         // [rows, n, a]
        activation* k = nullptr;         // [rows, n, a]
        activation* v = nullptr;         // [rows, m, b]
        activation* decay = nullptr;     // [rows, m]
        activation* strength = nullptr;  // [rows, m]
        activation* gate = nullptr;      // [rows, m, b], with an output gate
        activation* y = nullptr;         // [rows, m, b]
        activation* normed = nullptr;    // [rows, m, b]
        typename B::precision::sum* rstd = nullptr;

        constexpr void carve(carver& take, const Dims& d, const extents& e, bool) {
            const long long rows = e.own_rows();
            take(q_raw, rows * keys(d));
            take(k_raw, rows * keys(d));
            take(v_raw, rows * values(d));
            take(q, rows * keys(d));
            take(k, rows * keys(d));
            take(v, rows * values(d));
            take(decay, rows * mixer::value_heads(d));
            take(strength, rows * mixer::value_heads(d));
            if (policy.output_gate) take(gate, rows * values(d));
            take(y, rows * values(d));
            take(normed, rows * values(d));
            take(rstd, rows * mixer::value_heads(d));
        }
    };
    template <class B>
    using scratch = saved<B>;
    template <class B>
    struct state {
        using activation = typename B::precision::activation;
        typename B::precision::sum* s = nullptr;  // [B, m, a, b]
        activation* q_tail = nullptr;             // [B, w - 1, n a]
        activation* k_tail = nullptr;             // [B, w - 1, n a]
        activation* v_tail = nullptr;             // [B, w - 1, m b]

        constexpr void carve(carver& take, const Dims& d, long long batch, long long) {
            take(s, batch * mixer::state(d).recurrent);
            take(q_tail, batch * (policy.conv - 1) * keys(d));
            take(k_tail, batch * (policy.conv - 1) * keys(d));
            take(v_tail, batch * (policy.conv - 1) * values(d));
        }
    };

    /// a = W_o (norm(y) * silu(gate)).
    template <class B, class View>
    static void forward(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in, const state<B>& kept,
                        const saved<B>& s, typename B::precision::activation* a) {
        projector<B, View> project(backend, w, in.rows);
        project.forward(query<View>(d), in.x, s.q_raw);
        project.forward(key<View>(d), in.x, s.k_raw);
        project.forward(value<View>(d), in.x, s.v_raw);
        project.forward(decays<View>(d), in.x, s.decay);
        project.forward(strengths<View>(d), in.x, s.strength);
        if (policy.output_gate) project.forward(gate<View>(d), in.x, s.gate);
        backend.short_conv(conv(w, in, View::at("mixer.q_conv1d.weight"), keys(d), s.q_raw, kept.q_tail, s.q));
        backend.short_conv(conv(w, in, View::at("mixer.k_conv1d.weight"), keys(d), s.k_raw, kept.k_tail, s.k));
        backend.short_conv(conv(w, in, View::at("mixer.v_conv1d.weight"), values(d), s.v_raw, kept.v_tail, s.v));
        const auto args = core(d, w, in, kept, s);
        by_steps(in.rows, kept.s) ? backend.gated_delta_step(args) : backend.gated_delta(args);
        backend.gated_norm(norm(d, w, in, s));
        project.forward(output<View>(d), s.normed, a);
    }

    /// @param grad_x  [rows, d], overwritten
    template <class B, class View>
    static void backward(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in, const saved<B>& s,
                         const scratch<B>& g, const typename B::precision::activation* grad_a,
                         typename B::precision::activation* grad_x, typename B::precision::activation*) {
        using number = typename B::precision::activation;
        projector<B, View> project(backend, w, in.rows);
        project.backward(output<View>(d), s.normed, grad_a, g.normed, false);
        backend.gated_norm_backward({.forward = norm(d, w, in, s),
                                     .grad_y = g.normed,
                                     .grad_x = g.y,
                                     .grad_gate = g.gate,
                                     .grad_weight = w.gradient(View::at("mixer.o_norm.weight"))});
        backend.gated_delta_backward({.forward = core(d, w, in, state<B>{}, s),
                                      .grad_y = g.y,
                                      .grad_q = g.q,
                                      .grad_k = g.k,
                                      .grad_v = g.v,
                                      .grad_decay = g.decay,
                                      .grad_strength = g.strength,
                                      .grad_dt_bias = w.gradient(View::at("mixer.dt_bias")),
                                      .grad_a_log = w.gradient(View::at("mixer.A_log"))});
        const auto conv_back = [&](tensor_place weight, long long channels, const number* x, number* grad_y,
                                   number* grad) {
            number* none = nullptr;
            backend.short_conv_backward({.forward = conv(w, in, weight, channels, x, none, none),
                                         .grad_y = grad_y,
                                         .grad_x = grad,
                                         .grad_weight = w.gradient(weight)});
        };
        conv_back(View::at("mixer.q_conv1d.weight"), keys(d), s.q_raw, g.q, g.q_raw);
        conv_back(View::at("mixer.k_conv1d.weight"), keys(d), s.k_raw, g.k, g.k_raw);
        conv_back(View::at("mixer.v_conv1d.weight"), values(d), s.v_raw, g.v, g.v_raw);
        project.backward(query<View>(d), in.x, g.q_raw, grad_x, false);
        project.backward(key<View>(d), in.x, g.k_raw, grad_x, true);
        project.backward(value<View>(d), in.x, g.v_raw, grad_x, true);
        project.backward(decays<View>(d), in.x, g.decay, grad_x, true);
        project.backward(strengths<View>(d), in.x, g.strength, grad_x, true);
        if (policy.output_gate) project.backward(gate<View>(d), in.x, g.gate, grad_x, true);
    }

  private:
    template <class View>
    static projection query(const Dims& d) {
        return {.weight = View::at("mixer.q_proj.weight"), .inputs = d.width, .outputs = keys(d)};
    }
    template <class View>
    static projection key(const Dims& d) {
        return {.weight = View::at("mixer.k_proj.weight"), .inputs = d.width, .outputs = keys(d)};
    }
    template <class View>
    static projection value(const Dims& d) {
        return {.weight = View::at("mixer.v_proj.weight"), .inputs = d.width, .outputs = values(d)};
    }
    template <class View>
    static projection decays(const Dims& d) {
        return {.weight = View::at("mixer.a_proj.weight"), .inputs = d.width, .outputs = mixer::value_heads(d)};
    }
    template <class View>
    static projection strengths(const Dims& d) {
        return {.weight = View::at("mixer.b_proj.weight"), .inputs = d.width, .outputs = mixer::value_heads(d)};
    }
    template <class View>
    static projection gate(const Dims& d) {
        return {.weight = View::at("mixer.g_proj.weight"), .inputs = d.width, .outputs = values(d)};
    }
    template <class View>
    static projection output(const Dims& d) {
        return {.weight = View::at("mixer.o_proj.weight"), .inputs = values(d), .outputs = d.width};
    }
    template <class B, class View>
    static ShortConvArgs<typename B::precision> conv(const View& w, const mixer_rows<B>& in, tensor_place weight,
                                                     long long channels, const typename B::precision::activation* x,
                                                     typename B::precision::activation* tail,
                                                     typename B::precision::activation* y) {
        return {.rows = in.rows,
                .channels = static_cast<int>(channels),
                .width = static_cast<int>(policy.conv),
                .first = in.first,
                .x = x,
                .weight = w.master(weight),
                .tail = tail,
                .y = y};
    }
    template <class B, class View>
    static GatedDeltaArgs<typename B::precision> core(const Dims& d, const View& w, const mixer_rows<B>& in,
                                                      const state<B>& kept, const saved<B>& s) {
        return {.rows = in.rows,
                .heads = static_cast<int>(mixer::heads(d)),
                .value_heads = static_cast<int>(mixer::value_heads(d)),
                .key_dim = static_cast<int>(mixer::key_dim(d)),
                .value_dim = static_cast<int>(mixer::value_dim(d)),
                .first = in.first,
                .q = s.q,
                .k = s.k,
                .v = s.v,
                .decay = s.decay,
                .strength = s.strength,
                .dt_bias = w.master(View::at("mixer.dt_bias")),
                .a_log = w.master(View::at("mixer.A_log")),
                .state = kept.s,
                .y = s.y};
    }
    template <class B, class View>
    static GatedNormArgs<typename B::precision> norm(const Dims& d, const View& w, const mixer_rows<B>& in,
                                                     const saved<B>& s) {
        return {.rows = in.rows,
                .groups = static_cast<int>(mixer::value_heads(d)),
                .width = static_cast<int>(mixer::value_dim(d)),
                .place = gate_place::after,
                .epsilon = mixer::norm_epsilon,
                .x = s.y,
                .gate = s.gate,
                .weight = w.master(View::at("mixer.o_norm.weight")),
                .y = s.normed,
                .rstd = s.rstd};
    }
};

}  // namespace sdepth::inline v0
