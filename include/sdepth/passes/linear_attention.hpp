// SPDX-License-Identifier: MIT
// Forward and backward of linear attention as backend operations. Rank 5.
#pragma once

#include "sdepth/layers/linear_attention.hpp"
#include "sdepth/passes/attention.hpp"
#include "sdepth/passes/recurrent.hpp"

namespace sdepth::inline v0 {

template <linear_attention_policy P>
struct mixer_pass<LinearAttention<P>> {
    static constexpr linear_attention_policy policy = P;
    using mixer = LinearAttention<P>;
    static constexpr long long keys(const Dims& d) { return mixer::heads(d) * mixer::key_dim(d); }
    static constexpr long long values(const Dims& d) { return mixer::heads(d) * mixer::value_dim(d); }

    /// Kept from forward to backward; a backward needs as much again for the gradients.
    template <class B>
    struct saved {
        using activation = typename B::precision::activation;
        activation* q = nullptr;     // [rows, H, a]
        activation* k = nullptr;     // [rows, H, a]
        activation* v = nullptr;     // [rows, H, b]
        activation* gate = nullptr;  // [rows, H], with gates
        activation* y = nullptr;     // [rows, H, b]

        constexpr void carve(carver& take, const Dims& d, const extents& e, bool) {
            take(q, e.own_rows() * keys(d));
            take(k, e.own_rows() * keys(d));
            take(v, e.own_rows() * values(d));
            if (policy.gated) take(gate, e.own_rows() * mixer::heads(d));
            take(y, e.own_rows() * values(d));
        }
    };
    template <class B>
    using scratch = saved<B>;
    template <class B>
    struct state {
        typename B::precision::sum* s = nullptr;  // [B, H, a, b + 1]

        constexpr void carve(carver& take, const Dims& d, long long batch, long long) {
            take(s, batch * mixer::state(d).recurrent);
        }
    };

    /// a = W_o y.
    template <class B, class View>
    static void forward(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in, const state<B>& kept,
                        const saved<B>& s, typename B::precision::activation* a) {
        projector<B, View> project(backend, w, in.rows);
        project.forward(query<View>(d), in.x, s.q);
        project.forward(key<View>(d), in.x, s.k);
        project.forward(value<View>(d), in.x, s.v);
        if (policy.gated) project.forward(gate<View>(d), in.x, s.gate);
        const auto args = core(d, in, kept, s);
        by_steps(in.rows, kept.s) ? backend.linear_attention_step(args) : backend.linear_attention(args);
        project.forward(output<View>(d), s.y, a);
    }

    /// @param grad_x  [rows, d], overwritten
    template <class B, class View>
    static void backward(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in, const saved<B>& s,
                         const scratch<B>& g, const typename B::precision::activation* grad_a,
                         typename B::precision::activation* grad_x, typename B::precision::activation*) {
        projector<B, View> project(backend, w, in.rows);
        project.backward(output<View>(d), s.y, grad_a, g.y, false);
        backend.linear_attention_backward({.forward = core(d, in, state<B>{}, s),
                                           .grad_y = g.y,
                                           .grad_q = g.q,
                                           .grad_k = g.k,
                                           .grad_v = g.v,
                                           .grad_gate = g.gate});
        project.backward(query<View>(d), in.x, g.q, grad_x, false);
        project.backward(key<View>(d), in.x, g.k, grad_x, true);
        project.backward(value<View>(d), in.x, g.v, grad_x, true);
        if (policy.gated) project.backward(gate<View>(d), in.x, g.gate, grad_x, true);
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
    static projection gate(const Dims& d) {
        return {.weight = View::at("mixer.g_proj.weight"),
                .bias = View::at("mixer.g_proj.bias"),
                .inputs = d.width,
                .outputs = mixer::heads(d)};
    }
    template <class View>
    static projection output(const Dims& d) {
        return {.weight = View::at("mixer.o_proj.weight"), .inputs = values(d), .outputs = d.width};
    }
    template <class B>
    static LinearAttentionArgs<typename B::precision> core(const Dims& d, const mixer_rows<B>& in, const state<B>& kept,
                                                           const saved<B>& s) {
        return {.rows = in.rows,
                .heads = static_cast<int>(mixer::heads(d)),
                .key_dim = static_cast<int>(mixer::key_dim(d)),
                .value_dim = static_cast<int>(mixer::value_dim(d)),
                .map = policy.map,
                .epsilon = policy.epsilon,
                .first = in.first,
                .q = s.q,
                .k = s.k,
                .v = s.v,
                .gate = s.gate,
                .state = kept.s,
                .y = s.y};
    }
};

}  // namespace sdepth::inline v0
