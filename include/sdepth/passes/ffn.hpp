// SPDX-License-Identifier: MIT
// Forward and backward of the dense feed-forward parts as backend operations. Rank 5.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

#include "sdepth/layers/ffn.hpp"
#include "sdepth/ops/ffn.hpp"
#include "sdepth/ops/linear.hpp"
#include "sdepth/passes/view.hpp"

namespace sdepth::inline v0 {

/// What a feed-forward part that routes needs to know of the step; dense ones read none of it.
struct ffn_step {
    bool training = false;        ///< capacities and noise hold
    bool replay = false;          ///< the forward is run again: choices and statistics stand
    double rows = 0;              ///< real rows of the micro-batch: what its means count in the sums
    double balance_scale = 0;     ///< of the backward: what the gradients of a balance loss of weight 1 count
    double z_scale = 0;           ///< the same of a z-loss
    std::uint64_t seed = 0;       ///< key of the noise
    std::uint32_t layer = 0;      ///< number of the layer in the formula
    std::uint64_t first = 0;      ///< number of the micro-batch's first token
    int sequence = 0;             ///< L
    const int* ids = nullptr;     ///< position of each row
    long long* load = nullptr;    ///< [E], += choices; null: no statistics
    long long* counts = nullptr;  ///< [3], += rows; dropped choices; rerouted or deferred ones
    double* sums = nullptr;       ///< [3], += rows x balance loss; rows x z-loss; entropies of the router
};

/// Forward and backward of a feed-forward part; one without a specialisation can be counted but not run.
template <class Ffn>
struct ffn_pass;

namespace detail {

template <class T, class View>
LinearArgs<T> ffn_linear(const batch_rows& rows, long long inputs, long long outputs, const typename T::activation* x,
                         const View& w, tensor_place weight, tensor_place bias, typename T::activation* y) {
    return {.rows = rows,
            .inputs = static_cast<int>(inputs),
            .outputs = static_cast<int>(outputs),
            .x = x,
            .weight = w.weight(weight),
            .bias = w.master(bias),
            .y = y};
}

}  // namespace detail

template <ffn_policy P>
struct ffn_pass<SwiGLU<P>> {
    static constexpr long long experts = 0;
    static constexpr std::array<std::string_view, 3> written_matrices{"mlp.gate_proj.weight", "mlp.up_proj.weight",
                                                                      "mlp.down_proj.weight"};

    template <class B>
    struct saved {
        using activation = typename B::precision::activation;
        activation* gate = nullptr;  // [rows, F]
        activation* up = nullptr;    // [rows, F]
        activation* act = nullptr;   // [rows, F]

        constexpr void carve(carver&, carver& hidden, const Dims& d, const extents& e) {
            hidden(gate, e.own_rows() * d.ffn);
            hidden(up, e.own_rows() * d.ffn);
            hidden(act, e.own_rows() * d.ffn);
        }
    };
    template <class B>
    struct scratch {
        using activation = typename B::precision::activation;
        activation* grad_gate = nullptr;  // [rows, F]
        activation* grad_up = nullptr;    // [rows, F], first the gradient of act

        constexpr void carve(carver& take, const Dims& d, const extents& e) {
            take(grad_gate, e.own_rows() * d.ffn);
            take(grad_up, e.own_rows() * d.ffn);
        }
    };

    /// The hidden rows: what a selective replay repeats.
    template <class B, class View>
    static void hidden(B& backend, const Dims& d, const View& w, const batch_rows& rows,
                       const typename B::precision::activation* x, const saved<B>& s, const scratch<B>&) {
        using T = typename B::precision;
        backend.linear(detail::ffn_linear<T>(rows, d.width, d.ffn, x, w, View::at("mlp.gate_proj.weight"),
                                             View::at("mlp.gate_proj.bias"), s.gate));
        backend.linear(detail::ffn_linear<T>(rows, d.width, d.ffn, x, w, View::at("mlp.up_proj.weight"),
                                             View::at("mlp.up_proj.bias"), s.up));
        backend.swiglu(middle<T>(d, rows, s, s.act));
    }
    template <class B, class View>
    static void forward(B& backend, const Dims& d, const View& w, const batch_rows& rows,
                        const typename B::precision::activation* x, const saved<B>& s, const scratch<B>& t,
                        typename B::precision::activation* f, const ffn_step&) {
        using T = typename B::precision;
        hidden(backend, d, w, rows, x, s, t);
        backend.linear(detail::ffn_linear<T>(rows, d.ffn, d.width, s.act, w, View::at("mlp.down_proj.weight"),
                                             View::at("mlp.down_proj.bias"), f));
    }
    /// @param grad_x  [rows, d], overwritten
    template <class B, class View>
    static void backward(B& backend, const Dims& d, const View& w, const batch_rows& rows,
                         const typename B::precision::activation* x, const saved<B>& s, const scratch<B>& t,
                         const typename B::precision::activation* grad_f, typename B::precision::activation* grad_x,
                         const ffn_step&) {
        using T = typename B::precision;
        backend.linear_backward(
            {.forward = detail::ffn_linear<T>(rows, d.ffn, d.width, s.act, w, View::at("mlp.down_proj.weight"),
                                              View::at("mlp.down_proj.bias"), nullptr),
             .grad_y = grad_f,
             .grad_x = t.grad_up,
             .grad_weight = w.gradient(View::at("mlp.down_proj.weight")),
             .adds_to_grad_weight = w.adds_to_matrices(),
             .grad_bias = w.gradient(View::at("mlp.down_proj.bias"))});
        backend.swiglu_backward({.forward = middle<T>(d, rows, s, nullptr),
                                 .grad_act = t.grad_up,
                                 .grad_gate = t.grad_gate,
                                 .grad_up = t.grad_up});
        const auto back = [&](tensor_place weight, tensor_place bias, const auto* grad_y, bool adds) {
            backend.linear_backward(
                {.forward = detail::ffn_linear<T>(rows, d.width, d.ffn, x, w, weight, bias, nullptr),
                 .grad_y = grad_y,
                 .grad_x = grad_x,
                 .adds_to_grad_x = adds,
                 .grad_weight = w.gradient(weight),
                 .adds_to_grad_weight = w.adds_to_matrices(),
                 .grad_bias = w.gradient(bias)});
        };
        back(View::at("mlp.gate_proj.weight"), View::at("mlp.gate_proj.bias"), t.grad_gate, false);
        back(View::at("mlp.up_proj.weight"), View::at("mlp.up_proj.bias"), t.grad_up, true);
    }

  private:
    template <class T>
    static SwigluArgs<T> middle(const Dims& d, const batch_rows& rows, const auto& s, typename T::activation* act) {
        return {.rows = rows, .hidden = static_cast<int>(d.ffn), .gate = s.gate, .up = s.up, .act = act};
    }
};

template <activation A, ffn_policy P>
struct ffn_pass<MLP<A, P>> {
    static constexpr long long experts = 0;
    static constexpr std::array<std::string_view, 2> written_matrices{"mlp.up_proj.weight", "mlp.down_proj.weight"};

    template <class B>
    struct saved {
        typename B::precision::activation* up = nullptr;   // [rows, F]
        typename B::precision::activation* act = nullptr;  // [rows, F]

        constexpr void carve(carver&, carver& hidden, const Dims& d, const extents& e) {
            hidden(up, e.own_rows() * d.ffn);
            hidden(act, e.own_rows() * d.ffn);
        }
    };
    template <class B>
    struct scratch {
        using activation = typename B::precision::activation;
        activation* grad = nullptr;  // [rows, F]

        constexpr void carve(carver& take, const Dims& d, const extents& e) { take(grad, e.own_rows() * d.ffn); }
    };

    template <class B, class View>
    static void hidden(B& backend, const Dims& d, const View& w, const batch_rows& rows,
                       const typename B::precision::activation* x, const saved<B>& s, const scratch<B>&) {
        using T = typename B::precision;
        backend.linear(detail::ffn_linear<T>(rows, d.width, d.ffn, x, w, View::at("mlp.up_proj.weight"),
                                             View::at("mlp.up_proj.bias"), s.up));
        backend.activation(middle<T>(d, rows, s, s.act));
    }
    template <class B, class View>
    static void forward(B& backend, const Dims& d, const View& w, const batch_rows& rows,
                        const typename B::precision::activation* x, const saved<B>& s, const scratch<B>& t,
                        typename B::precision::activation* f, const ffn_step&) {
        using T = typename B::precision;
        hidden(backend, d, w, rows, x, s, t);
        backend.linear(detail::ffn_linear<T>(rows, d.ffn, d.width, s.act, w, View::at("mlp.down_proj.weight"),
                                             View::at("mlp.down_proj.bias"), f));
    }
    template <class B, class View>
    static void backward(B& backend, const Dims& d, const View& w, const batch_rows& rows,
                         const typename B::precision::activation* x, const saved<B>& s, const scratch<B>& t,
                         const typename B::precision::activation* grad_f, typename B::precision::activation* grad_x,
                         const ffn_step&) {
        using T = typename B::precision;
        backend.linear_backward(
            {.forward = detail::ffn_linear<T>(rows, d.ffn, d.width, s.act, w, View::at("mlp.down_proj.weight"),
                                              View::at("mlp.down_proj.bias"), nullptr),
             .grad_y = grad_f,
             .grad_x = t.grad,
             .grad_weight = w.gradient(View::at("mlp.down_proj.weight")),
             .adds_to_grad_weight = w.adds_to_matrices(),
             .grad_bias = w.gradient(View::at("mlp.down_proj.bias"))});
        backend.activation_backward({.forward = middle<T>(d, rows, s, nullptr), .grad_act = t.grad, .grad_x = t.grad});
        backend.linear_backward(
            {.forward = detail::ffn_linear<T>(rows, d.width, d.ffn, x, w, View::at("mlp.up_proj.weight"),
                                              View::at("mlp.up_proj.bias"), nullptr),
             .grad_y = t.grad,
             .grad_x = grad_x,
             .grad_weight = w.gradient(View::at("mlp.up_proj.weight")),
             .adds_to_grad_weight = w.adds_to_matrices(),
             .grad_bias = w.gradient(View::at("mlp.up_proj.bias"))});
    }

  private:
    template <class T>
    static ActivationArgs<T> middle(const Dims& d, const batch_rows& rows, const auto& s, typename T::activation* act) {
        return {.rows = rows, .hidden = static_cast<int>(d.ffn), .kind = A, .x = s.up, .act = act};
    }
};

}  // namespace sdepth::inline v0
