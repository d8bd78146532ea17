// SPDX-License-Identifier: MIT
// Forward and backward of S4 as backend operations. Rank 5.
#pragma once

#include "sdepth/layers/s4.hpp"
#include "sdepth/ops/ffn.hpp"
#include "sdepth/passes/attention.hpp"
#include "sdepth/passes/recurrent.hpp"

namespace sdepth::inline v0 {

template <s4_policy P>
struct mixer_pass<S4<P>> {
    static constexpr s4_policy policy = P;
    using mixer = S4<P>;

    /// Kept from forward to backward.
    template <class B>
    struct saved {
        using activation = typename B::precision::activation;
        activation* y = nullptr;    // [rows, d]
        activation* act = nullptr;  // [rows, d], gelu(y)

        constexpr void carve(carver& take, const Dims& d, const extents& e, bool) {
            take(y, e.own_rows() * d.width);
            take(act, e.own_rows() * d.width);
        }
    };
    template <class B>
    struct scratch {
        typename B::precision::activation* grad_y = nullptr;  // [rows, d], first the gradient of gelu(y)

        constexpr void carve(carver& take, const Dims& d, const extents& e, bool) {
            take(grad_y, e.own_rows() * d.width);
        }
    };
    template <class B>
    struct state {
        typename B::precision::sum* s = nullptr;  // [B, d, N]

        constexpr void carve(carver& take, const Dims& d, long long batch, long long) {
            take(s, batch * mixer::state(d).recurrent);
        }
    };

    /// a = W_out gelu(y).
    template <class B, class View>
    static void forward(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in, const state<B>& kept,
                        const saved<B>& s, typename B::precision::activation* a) {
        projector<B, View> project(backend, w, in.rows);
        const auto args = core(d, w, in, kept, s);
        by_steps(in.rows, kept.s) ? backend.s4_step(args) : backend.s4(args);
        backend.activation(middle(d, in, s));
        project.forward(output<View>(d), s.act, a);
    }

    /// @param grad_x  [rows, d], overwritten
    template <class B, class View>
    static void backward(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in, const saved<B>& s,
                         const scratch<B>& g, const typename B::precision::activation* grad_a,
                         typename B::precision::activation* grad_x, typename B::precision::activation*) {
        projector<B, View> project(backend, w, in.rows);
        project.backward(output<View>(d), s.act, grad_a, g.grad_y, false);
        backend.activation_backward({.forward = middle(d, in, s), .grad_act = g.grad_y, .grad_x = g.grad_y});
        backend.s4_backward({.forward = core(d, w, in, state<B>{}, s),
                             .grad_y = g.grad_y,
                             .grad_x = grad_x,
                             .grad_a_log = w.gradient(View::at("mixer.A_log")),
                             .grad_b = w.gradient(View::at("mixer.B")),
                             .grad_c = w.gradient(View::at("mixer.C")),
                             .grad_skip = w.gradient(View::at("mixer.D")),
                             .grad_log_step = w.gradient(View::at("mixer.log_step"))});
    }

  private:
    template <class View>
    static projection output(const Dims& d) {
        return {.weight = View::at("mixer.out_proj.weight"), .inputs = d.width, .outputs = d.width};
    }
    template <class B>
    static ActivationArgs<typename B::precision> middle(const Dims& d, const mixer_rows<B>& in, const saved<B>& s) {
        return {.rows = in.rows, .hidden = static_cast<int>(d.width), .kind = activation::gelu, .x = s.y, .act = s.act};
    }
    template <class B, class View>
    static S4Args<typename B::precision> core(const Dims& d, const View& w, const mixer_rows<B>& in,
                                              const state<B>& kept, const saved<B>& s) {
        return {.rows = in.rows,
                .channels = static_cast<int>(d.width),
                .states = static_cast<int>(policy.state),
                .first = in.first,
                .x = in.x,
                .a_log = w.master(View::at("mixer.A_log")),
                .b = w.master(View::at("mixer.B")),
                .c = w.master(View::at("mixer.C")),
                .skip = w.master(View::at("mixer.D")),
                .log_step = w.master(View::at("mixer.log_step")),
                .state = kept.s,
                .y = s.y};
    }
};

}  // namespace sdepth::inline v0
