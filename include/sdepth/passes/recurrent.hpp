// SPDX-License-Identifier: MIT
// What the passes of recurrent mixers share: projections, and the state that decoding keeps. Rank 5.
#pragma once

#include "sdepth/ops/linear.hpp"
#include "sdepth/ops/recurrent.hpp"
#include "sdepth/passes/view.hpp"

namespace sdepth::inline v0 {

/// A map y = x W' + bias with the rows skip .. skip + outputs - 1 of a weight of the layer.
struct projection {
    tensor_place weight;
    tensor_place bias{};  ///< none where the layer has no such tensor
    long long inputs = 0;
    long long outputs = 0;
    long long skip = 0;
};

/// Projections of the rows of one pass, forward and backward.
template <class B, class View>
class projector {
    using T = typename B::precision;
    using activation = typename T::activation;

  public:
    projector(B& backend, const View& w, const batch_rows& rows) : backend_(backend), w_(w), rows_(rows) {}

    void forward(const projection& m, const activation* x, activation* y) { backend_.linear(args(m, x, y)); }
    /// @param grad_x  null where nobody needs it; else overwritten or, with `adds`, added to
    void backward(const projection& m, const activation* x, const activation* grad_y, activation* grad_x, bool adds) {
        auto* grad_weight = w_.gradient(m.weight);
        backend_.linear_backward({.forward = args(m, x, nullptr),
                                  .grad_y = grad_y,
                                  .grad_x = grad_x,
                                  .adds_to_grad_x = adds,
                                  .grad_weight = grad_weight + m.skip * m.inputs,
                                  .grad_bias = w_.gradient(m.bias)});
    }

  private:
    LinearArgs<T> args(const projection& m, const activation* x, activation* y) const {
        return {.rows = rows_,
                .inputs = static_cast<int>(m.inputs),
                .outputs = static_cast<int>(m.outputs),
                .x = x,
                .weight = w_.weight(m.weight) + m.skip * m.inputs,
                .bias = w_.master(m.bias),
                .y = y};
    }

    B& backend_;
    const View& w_;
    batch_rows rows_;
};

/// Whether a pass runs the recurrence itself: decoding passes of one row. Longer ones prefill in the parallel form.
inline bool by_steps(const batch_rows& rows, const void* state) { return state != nullptr && rows.each.capacity == 1; }

}  // namespace sdepth::inline v0
