// SPDX-License-Identifier: MIT
// Forward and backward of Mamba as backend operations. Rank 5.
#pragma once

#include "sdepth/layers/mamba.hpp"
#include "sdepth/ops/ffn.hpp"
#include "sdepth/passes/attention.hpp"
#include "sdepth/passes/recurrent.hpp"

namespace sdepth::inline v0 {

template <mamba_policy P>
struct mixer_pass<Mamba<P>> {
    static constexpr mamba_policy policy = P;
    using mixer = Mamba<P>;

    /// Kept from forward to backward; a backward needs as much again for the gradients.
    template <class B>
    struct saved {
        using activation = typename B::precision::activation;
        activation* x_raw = nullptr;  // [rows, C], before the convolution
        activation* z = nullptr;      // [rows, C], the gate
        activation* x = nullptr;      // [rows, C]
        activation* low = nullptr;    // [rows, r], the step before its second projection
        activation* bc = nullptr;     // [rows, 2 N]
        activation* dt = nullptr;     // [rows, C]
        activation* y = nullptr;      // [rows, C]
        activation* gated = nullptr;  // [rows, C]

        constexpr void carve(carver& take, const Dims& d, const extents& e, bool) {
            take(x_raw, e.own_rows() * mixer::channels(d));
            take(z, e.own_rows() * mixer::channels(d));
            take(x, e.own_rows() * mixer::channels(d));
            take(low, e.own_rows() * mixer::step_rank(d));
            take(bc, e.own_rows() * 2 * policy.state);
            take(dt, e.own_rows() * mixer::channels(d));
            take(y, e.own_rows() * mixer::channels(d));
            take(gated, e.own_rows() * mixer::channels(d));
        }
    };
    template <class B>
    using scratch = saved<B>;
    template <class B>
    struct state {
        typename B::precision::sum* s = nullptr;            // [B, C, N]
        typename B::precision::activation* tail = nullptr;  // [B, w - 1, C]

        constexpr void carve(carver& take, const Dims& d, long long batch, long long) {
            take(s, batch * mixer::state(d).recurrent);
            take(tail, batch * (policy.conv - 1) * mixer::channels(d));
        }
    };

    /// a = W_out (y * silu(z)).
    template <class B, class View>
    static void forward(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in, const state<B>& kept,
                        const saved<B>& s, typename B::precision::activation* a) {
        projector<B, View> project(backend, w, in.rows);
        project.forward(inputs<View>(d), in.x, s.x_raw);
        project.forward(gate<View>(d), in.x, s.z);
        backend.short_conv(conv(d, w, in, kept, s));
        project.forward(low_steps<View>(d), s.x, s.low);
        project.forward(pairs<View>(d), s.x, s.bc);
        project.forward(steps<View>(d), s.low, s.dt);
        const auto args = core(d, w, in, kept, s);
        by_steps(in.rows, kept.s) ? backend.selective_scan_step(args) : backend.selective_scan(args);
        backend.swiglu(gating(d, in, s));
        project.forward(output<View>(d), s.gated, a);
    }

    /// @param grad_x  [rows, d], overwritten
    template <class B, class View>
    static void backward(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in, const saved<B>& s,
                         const scratch<B>& g, const typename B::precision::activation* grad_a,
                         typename B::precision::activation* grad_x, typename B::precision::activation*) {
        projector<B, View> project(backend, w, in.rows);
        project.backward(output<View>(d), s.gated, grad_a, g.gated, false);
        backend.swiglu_backward({.forward = gating(d, in, s), .grad_act = g.gated, .grad_gate = g.z, .grad_up = g.y});
        backend.selective_scan_backward({.forward = core(d, w, in, state<B>{}, s),
                                         .grad_y = g.y,
                                         .grad_x = g.x,
                                         .grad_dt = g.dt,
                                         .grad_bc = g.bc,
                                         .grad_a_log = w.gradient(View::at("mixer.A_log")),
                                         .grad_skip = w.gradient(View::at("mixer.D"))});
        project.backward(steps<View>(d), s.low, g.dt, g.low, false);
        project.backward(low_steps<View>(d), s.x, g.low, g.x, true);
        project.backward(pairs<View>(d), s.x, g.bc, g.x, true);
        backend.short_conv_backward({.forward = conv(d, w, in, state<B>{}, s),
                                     .grad_y = g.x,
                                     .grad_x = g.x_raw,
                                     .grad_weight = w.gradient(View::at("mixer.conv1d.weight")),
                                     .grad_bias = w.gradient(View::at("mixer.conv1d.bias"))});
        project.backward(inputs<View>(d), in.x, g.x_raw, grad_x, false);
        project.backward(gate<View>(d), in.x, g.z, grad_x, true);
    }

  private:
    // The rows of in_proj: x, then z; of x_proj: the step, then B and C.
    template <class View>
    static projection inputs(const Dims& d) {
        return {.weight = View::at("mixer.in_proj.weight"), .inputs = d.width, .outputs = mixer::channels(d)};
    }
    template <class View>
    static projection gate(const Dims& d) {
        return {.weight = View::at("mixer.in_proj.weight"),
                .inputs = d.width,
                .outputs = mixer::channels(d),
                .skip = mixer::channels(d)};
    }
    template <class View>
    static projection low_steps(const Dims& d) {
        return {
            .weight = View::at("mixer.x_proj.weight"), .inputs = mixer::channels(d), .outputs = mixer::step_rank(d)};
    }
    template <class View>
    static projection pairs(const Dims& d) {
        return {.weight = View::at("mixer.x_proj.weight"),
                .inputs = mixer::channels(d),
                .outputs = 2 * policy.state,
                .skip = mixer::step_rank(d)};
    }
    template <class View>
    static projection steps(const Dims& d) {
        return {.weight = View::at("mixer.dt_proj.weight"),
                .bias = View::at("mixer.dt_proj.bias"),
                .inputs = mixer::step_rank(d),
                .outputs = mixer::channels(d)};
    }
    template <class View>
    static projection output(const Dims& d) {
        return {.weight = View::at("mixer.out_proj.weight"), .inputs = mixer::channels(d), .outputs = d.width};
    }
    template <class B, class View>
    static ShortConvArgs<typename B::precision> conv(const Dims& d, const View& w, const mixer_rows<B>& in,
                                                     const state<B>& kept, const saved<B>& s) {
        return {.rows = in.rows,
                .channels = static_cast<int>(mixer::channels(d)),
                .width = static_cast<int>(policy.conv),
                .first = in.first,
                .x = s.x_raw,
                .weight = w.master(View::at("mixer.conv1d.weight")),
                .bias = w.master(View::at("mixer.conv1d.bias")),
                .tail = kept.tail,
                .y = s.x};
    }
    template <class B, class View>
    static SelectiveScanArgs<typename B::precision> core(const Dims& d, const View& w, const mixer_rows<B>& in,
                                                         const state<B>& kept, const saved<B>& s) {
        return {.rows = in.rows,
                .channels = static_cast<int>(mixer::channels(d)),
                .states = static_cast<int>(policy.state),
                .first = in.first,
                .x = s.x,
                .dt = s.dt,
                .bc = s.bc,
                .a_log = w.master(View::at("mixer.A_log")),
                .skip = w.master(View::at("mixer.D")),
                .state = kept.s,
                .y = s.y};
    }
    template <class B>
    static SwigluArgs<typename B::precision> gating(const Dims& d, const mixer_rows<B>& in, const saved<B>& s) {
        return {
            .rows = in.rows, .hidden = static_cast<int>(mixer::channels(d)), .gate = s.z, .up = s.y, .act = s.gated};
    }
};

}  // namespace sdepth::inline v0
