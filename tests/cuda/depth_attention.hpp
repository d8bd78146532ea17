// SPDX-License-Identifier: MIT
// Depth-attention problems for the GPU tests. No CUDA, no Catch2 here.
#pragma once

#include <cstdint>
#include <vector>

#include "sdepth/ops/depth_attention.hpp"

namespace sdepth_test {

/// Where the gradients of slots come from: the backward itself; depth_slot_gradients, from three readings; the
/// backward, added to what is there.
enum class slot_gradients { at_once, later, added };

struct depth_inputs {
    sdepth::DepthAttentionArgs<double> args;  // sizes; the pointers lead nowhere
    // grad_q, o and lse as the sequence branch left them; o and lse of the backward are joint ones.
    std::vector<double> q, slot, o, lse, joint_o, joint_lse, grad_o, grad_q;
    std::vector<std::uint8_t> mask;
    std::vector<int> live, ids;
    int gap_begin = 0, gap_end = 0;  // slots between that nobody reads: two calls of each operation
    slot_gradients how = slot_gradients::at_once;
    std::vector<double> slot_sum;  // what is there before

    /// Row of slots of a live token.
    std::size_t row(int token) const {
        return static_cast<std::size_t>(
            ids.empty() ? token : token / args.tokens.capacity * args.sequence + ids[static_cast<std::size_t>(token)]);
    }
    bool reads(int s) const { return s < args.used && (s < gap_begin || s >= gap_end); }
};

struct depth_outputs {
    std::vector<double> o, lse, grad_q, grad_slot;  // grad_slot: or slot_sum
};

/// Calls f with the arguments of each call, then from which slot on and to which.
template <class T, class F>
void for_each_range(const depth_inputs& in, const sdepth::DepthAttentionBackwardArgs<T>& whole, F f) {
    const auto call = [&](int from, int to) {
        sdepth::DepthAttentionBackwardArgs<T> g = whole;
        auto& a = g.forward;
        const int numbers = from * a.kv_heads * 2 * a.head_dim, weights = from * a.heads;
        a.used = to - from, a.slot += numbers;
        if (a.mask != nullptr) a.mask += from;
        if (g.grad_slot != nullptr) g.grad_slot += numbers;
        if (g.slot_sum != nullptr) g.slot_sum += numbers;
        if (g.p != nullptr) g.p += weights, g.ds += weights;
        f(g, from, to);
    };
    if (in.gap_begin > 0) call(0, in.gap_begin);
    call(in.gap_end, in.args.used);
}

/// Slots from ... to of the gradients that a backward left for later, as if three layers had read them.
template <class T>
sdepth::DepthSlotGradientArgs<T> read_three_times(const sdepth::DepthAttentionBackwardArgs<T>& g, int from, int to,
                                                  T* grad_slot) {
    const auto& a = g.forward;
    sdepth::DepthSlotGradientArgs<T> later;
    later.batch = a.batch, later.heads = a.heads, later.kv_heads = a.kv_heads, later.head_dim = a.head_dim;
    later.tokens = a.tokens, later.slots = a.slots, later.scale = a.scale, later.q_row = a.q_row;
    later.begin = from, later.end = to, later.readers = 3;
    for (int r = 0; r < later.readers; ++r) later.reads[r] = {a.q, g.grad_o, g.p, g.ds};
    later.grad_slot = grad_slot;
    return later;
}

depth_outputs depth_on_device(const depth_inputs& in);

}  // namespace sdepth_test
