// SPDX-License-Identifier: MIT
// Forward and backward of Mamba-2 as backend operations. Rank 5.
#pragma once

#include "sdepth/layers/mamba2.hpp"
#include "sdepth/passes/attention.hpp"
#include "sdepth/passes/recurrent.hpp"

namespace sdepth::inline v0 {

template <mamba2_policy P>
struct mixer_pass<Mamba2<P>> {
    static constexpr mamba2_policy policy = P;
    using mixer = Mamba2<P>;

    /// Kept from forward to backward; a backward needs as much again for the gradients.
    template <class B>
    struct saved {
        using activation = typename B::precision::activation;
        activation* z = nullptr;        // [rows, C], the gate
        activation* xbc_raw = nullptr;  // [rows, Q], before the convolution
        activation* xbc = nullptr;      // [rows, Q]
        activation* dt = nullptr;       // [rows, H]
        activation* y = nullptr;        // [rows, C]
        activation* normed = nullptr;   // [rows, C]
        typename B::precision::sum* rstd = nullptr;

        constexpr void carve(carver& take, const Dims& d, const extents& e, bool) {
            take(z, e.own_rows() * mixer::channels(d));
            take(xbc_raw, e.own_rows() * mixer::conv_channels(d));
            take(xbc, e.own_rows() * mixer::conv_channels(d));
            take(dt, e.own_rows() * mixer::heads(d));
            take(y, e.own_rows() * mixer::channels(d));
            take(normed, e.own_rows() * mixer::channels(d));
            take(rstd, e.own_rows());
        }
    };
    template <class B>
    using scratch = saved<B>;
    template <class B>
    struct state {
        typename B::precision::sum* s = nullptr;            // [B, H, N, h]
        typename B::precision::activation* tail = nullptr;  // [B, w - 1, Q]

        constexpr void carve(carver& take, const Dims& d, long long batch, long long) {
            take(s, batch * mixer::state(d).recurrent);
            take(tail, batch * (policy.conv - 1) * mixer::conv_channels(d));
        }
    };

    /// a = W_out norm(y * silu(z)).
    template <class B, class View>
    static void forward(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in, const state<B>& kept,
                        const saved<B>& s, typename B::precision::activation* a) {
        projector<B, View> project(backend, w, in.rows);
        project.forward(gate<View>(d), in.x, s.z);
        project.forward(inputs<View>(d), in.x, s.xbc_raw);
        project.forward(steps<View>(d), in.x, s.dt);
        backend.short_conv(conv(d, w, in, kept, s));
        const auto args = core(d, w, in, kept, s);
        by_steps(in.rows, kept.s) ? backend.ssd_step(args) : backend.ssd(args);
        backend.gated_norm(norm(d, w, in, s));
        project.forward(output<View>(d), s.normed, a);
    }

    /// @param grad_x  [rows, d], overwritten
    template <class B, class View>
    static void backward(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in, const saved<B>& s,
                         const scratch<B>& g, const typename B::precision::activation* grad_a,
                         typename B::precision::activation* grad_x, typename B::precision::activation*) {
        projector<B, View> project(backend, w, in.rows);
        project.backward(output<View>(d), s.normed, grad_a, g.normed, false);
        backend.gated_norm_backward({.forward = norm(d, w, in, s),
                                     .grad_y = g.normed,
                                     .grad_x = g.y,
                                     .grad_gate = g.z,
                                     .grad_weight = w.gradient(View::at("mixer.norm.weight"))});
        backend.ssd_backward({.forward = core(d, w, in, state<B>{}, s),
                              .grad_y = g.y,
                              .grad_xbc = g.xbc,
                              .grad_dt = g.dt,
                              .grad_dt_bias = w.gradient(View::at("mixer.dt_bias")),
                              .grad_a_log = w.gradient(View::at("mixer.A_log")),
                              .grad_skip = w.gradient(View::at("mixer.D"))});
        backend.short_conv_backward({.forward = conv(d, w, in, state<B>{}, s),
                                     .grad_y = g.xbc,
                                     .grad_x = g.xbc_raw,
                                     .grad_weight = w.gradient(View::at("mixer.conv1d.weight")),
                                     .grad_bias = w.gradient(View::at("mixer.conv1d.bias"))});
        project.backward(gate<View>(d), in.x, g.z, grad_x, false);
        project.backward(inputs<View>(d), in.x, g.xbc_raw, grad_x, true);
        project.backward(steps<View>(d), in.x, g.dt, grad_x, true);
    }

  private:
    // The rows of in_proj: z, then x, B and C, then the steps.
    template <class View>
    static projection gate(const Dims& d) {
        return {.weight = View::at("mixer.in_proj.weight"), .inputs = d.width, .outputs = mixer::channels(d)};
    }
    template <class View>
    static projection inputs(const Dims& d) {
        return {.weight = View::at("mixer.in_proj.weight"),
                .inputs = d.width,
                .outputs = mixer::conv_channels(d),
                .skip = mixer::channels(d)};
    }
    template <class View>
    static projection steps(const Dims& d) {
        return {.weight = View::at("mixer.in_proj.weight"),
                .inputs = d.width,
                .outputs = mixer::heads(d),
                .skip = mixer::channels(d) + mixer::conv_channels(d)};
    }
    template <class View>
    static projection output(const Dims& d) {
        return {.weight = View::at("mixer.out_proj.weight"), .inputs = mixer::channels(d), .outputs = d.width};
    }
    template <class B, class View>
    static ShortConvArgs<typename B::precision> conv(const Dims& d, const View& w, const mixer_rows<B>& in,
                                                     const state<B>& kept, const saved<B>& s) {
        return {.rows = in.rows,
                .channels = static_cast<int>(mixer::conv_channels(d)),
                .width = static_cast<int>(policy.conv),
                .first = in.first,
                .x = s.xbc_raw,
                .weight = w.master(View::at("mixer.conv1d.weight")),
                .bias = w.master(View::at("mixer.conv1d.bias")),
                .tail = kept.tail,
                .y = s.xbc};
    }
    template <class B, class View>
    static SsdArgs<typename B::precision> core(const Dims& d, const View& w, const mixer_rows<B>& in,
                                               const state<B>& kept, const saved<B>& s) {
        return {.rows = in.rows,
                .heads = static_cast<int>(mixer::heads(d)),
                .head_dim = static_cast<int>(policy.head_dim),
                .groups = static_cast<int>(policy.groups),
                .states = static_cast<int>(policy.state),
                .first = in.first,
                .xbc = s.xbc,
                .dt = s.dt,
                .dt_bias = w.master(View::at("mixer.dt_bias")),
                .a_log = w.master(View::at("mixer.A_log")),
                .skip = w.master(View::at("mixer.D")),
                .state = kept.s,
                .y = s.y};
    }
    template <class B, class View>
    static GatedNormArgs<typename B::precision> norm(const Dims& d, const View& w, const mixer_rows<B>& in,
                                                     const saved<B>& s) {
        return {.rows = in.rows,
                .width = static_cast<int>(mixer::channels(d)),
                .place = gate_place::before,
                .epsilon = mixer::norm_epsilon,
                .x = s.y,
                .gate = s.z,
                .weight = w.master(View::at("mixer.norm.weight")),
                .y = s.normed,
                .rstd = s.rstd};
    }
};

}  // namespace sdepth::inline v0
