// SPDX-License-Identifier: MIT
// Forward and backward of the experts that always run, one after another, each a SwiGLU. Rank 5.
#pragma once

#include "sdepth/ops/ffn.hpp"
#include "sdepth/ops/linear.hpp"
#include "sdepth/ops/norm.hpp"
#include "sdepth/passes/ffn.hpp"

namespace sdepth::inline v0 {

/// The shared part of an expert layer; without shared experts it runs nothing and needs nothing.
template <class Layer>
struct shared_experts_pass {
    static constexpr long long shared = Layer::policy.shared;

    template <class B>
    struct saved {
        typename B::precision::activation* gate = nullptr;  // [shared, rows, F]
        typename B::precision::activation* up = nullptr;    // [shared, rows, F]

        constexpr void carve(carver& hidden, const Dims& d, const extents& e) {
            if (shared == 0) return;
            hidden(gate, shared * e.own_rows() * Layer::shared_width(d));
            hidden(up, shared * e.own_rows() * Layer::shared_width(d));
        }
    };
    template <class B>
    struct scratch {
        typename B::precision::activation* act = nullptr;        // [rows, F]
        typename B::precision::activation* grad_gate = nullptr;  // [rows, F]
        typename B::precision::activation* grad_up = nullptr;    // [rows, F], first the gradient of act
        typename B::precision::activation* y = nullptr;          // [rows, d]

        constexpr void carve(carver& take, const Dims& d, const extents& e) {
            if (shared == 0) return;
            take(act, e.own_rows() * Layer::shared_width(d));
            take(grad_gate, e.own_rows() * Layer::shared_width(d));
            take(grad_up, e.own_rows() * Layer::shared_width(d));
            take(y, e.own_rows() * d.width);
        }
    };

    template <class B, class View>
    static void hidden(B& backend, const Dims& d, const View& w, const batch_rows& rows,
                       const typename B::precision::activation* x, const saved<B>& s) {
        for (long long i = 0; i < shared; ++i) {
            backend.linear(in(d, w, rows, i, x, gate_at<View>, of_copy(d, rows, s.gate, i)));
            backend.linear(in(d, w, rows, i, x, up_at<View>, of_copy(d, rows, s.up, i)));
        }
    }
    /// From the hidden rows: f, overwritten; untouched without shared experts.
    template <class B, class View>
    static void forward(B& backend, const Dims& d, const View& w, const batch_rows& rows, const saved<B>& s,
                        const scratch<B>& t, typename B::precision::activation* f) {
        for (long long i = 0; i < shared; ++i) {
            backend.swiglu(middle(d, rows, s, i, t.act));
            auto* y = i == 0 ? f : t.y;
            backend.linear(out(d, w, rows, i, t.act, y));
            if (i > 0) backend.add({.rows = rows, .width = static_cast<int>(d.width), .x = f, .a = y, .sum = f});
        }
    }
    /// @param grad_x  [rows, d], added to
    template <class B, class View>
    static void backward(B& backend, const Dims& d, const View& w, const batch_rows& rows,
                         const typename B::precision::activation* x, const saved<B>& s, const scratch<B>& t,
                         const typename B::precision::activation* grad_f, typename B::precision::activation* grad_x) {
        typename B::precision::activation* none = nullptr;
        for (long long i = 0; i < shared; ++i) {
            // Gradients of a copy lie as the weights do: the region mirrors whole tensors.
            const auto gradient = [&](tensor_place all) { return w.gradient(all) + i * (all.elements / copies); };
            backend.swiglu(middle(d, rows, s, i, t.act));
            backend.linear_backward({.forward = out(d, w, rows, i, t.act, none),
                                     .grad_y = grad_f,
                                     .grad_x = t.grad_up,
                                     .grad_weight = gradient(down_at<View>)});
            backend.swiglu_backward({.forward = middle(d, rows, s, i, none),
                                     .grad_act = t.grad_up,
                                     .grad_gate = t.grad_gate,
                                     .grad_up = t.grad_up});
            const auto back = [&](tensor_place weight, const auto* grad_y) {
                backend.linear_backward({.forward = in(d, w, rows, i, x, weight, none),
                                         .grad_y = grad_y,
                                         .grad_x = grad_x,
                                         .adds_to_grad_x = true,
                                         .grad_weight = gradient(weight)});
            };
            back(gate_at<View>, t.grad_gate);
            back(up_at<View>, t.grad_up);
        }
    }

  private:
    static constexpr long long copies = shared > 0 ? shared : 1;  // divides where there are none, too
    template <class View>
    static constexpr tensor_place gate_at = View::at("mlp.shared_experts.{e}.gate_proj.weight");
    template <class View>
    static constexpr tensor_place up_at = View::at("mlp.shared_experts.{e}.up_proj.weight");
    template <class View>
    static constexpr tensor_place down_at = View::at("mlp.shared_experts.{e}.down_proj.weight");

    // Tensor of copy i, of those that lie together.
    static tensor_place copy_of(tensor_place all, long long i) {
        return {all.offset + i * (all.elements / copies), all.elements / copies};
    }
    template <class A>
    static A* of_copy(const Dims& d, const batch_rows& rows, A* hidden, long long i) {
        return hidden + i * rows.capacity() * Layer::shared_width(d);
    }
    template <class View, class A>
    static auto in(const Dims& d, const View& w, const batch_rows& rows, long long i, const A* x, tensor_place weight,
                   A* y) {
        return detail::ffn_linear<typename View::precision>(rows, d.width, Layer::shared_width(d), x, w,
                                                            copy_of(weight, i), tensor_place{}, y);
    }
    template <class View, class A>
    static auto out(const Dims& d, const View& w, const batch_rows& rows, long long i, const A* x, A* y) {
        return detail::ffn_linear<typename View::precision>(rows, Layer::shared_width(d), d.width, x, w,
                                                            copy_of(down_at<View>, i), tensor_place{}, y);
    }
    template <class B>
    static SwigluArgs<typename B::precision> middle(const Dims& d, const batch_rows& rows, const saved<B>& s,
                                                    long long i, typename B::precision::activation* act) {
        return {.rows = rows,
                .hidden = static_cast<int>(Layer::shared_width(d)),
                .gate = of_copy(d, rows, s.gate, i),
                .up = of_copy(d, rows, s.up, i),
                .act = act};
    }
};

}  // namespace sdepth::inline v0
