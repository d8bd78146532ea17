// SPDX-License-Identifier: MIT
// Launches for depth_attention.cpp.
#include "depth_attention.hpp"

#include "device_buffer.cuh"
#include "sdepth/kernels/cuda/depth_attention.cuh"
#include "sdepth/kernels/cuda/depth_slot_gradients.cuh"

namespace sdepth_test {

depth_outputs depth_on_device(const depth_inputs& in) {
    const auto& shape = in.args;
    buffer<bf16> q(in.q), slot(in.slot), o(in.o), joint_o(in.joint_o), grad_o(in.grad_o), grad_q(in.grad_q);
    buffer<float> lse(in.lse), joint_lse(in.joint_lse);
    buffer<std::uint8_t> mask(in.mask);
    buffer<int> live(in.live);
    const std::size_t weights = in.lse.size() * static_cast<std::size_t>(shape.slots);
    buffer<bf16> grad_slot(in.slot.size()), p(weights), ds(weights);
    grad_slot.poison(), p.poison(), ds.poison();

    sdepth::DepthAttentionArgs<bf16> a;
    a.batch = shape.batch, a.heads = shape.heads, a.kv_heads = shape.kv_heads, a.head_dim = shape.head_dim;
    a.tokens = {shape.tokens.capacity, in.live.empty() ? nullptr : live.data()};
    a.slots = shape.slots, a.used = shape.used, a.scale = shape.scale, a.q_row = shape.q_row;
    a.q = q.data(), a.slot = slot.data(), a.mask = in.mask.empty() ? nullptr : mask.data();
    a.o = o.data(), a.lse = lse.data();
    sdepth::on_cuda::depth_attention_forward(a, nullptr);

    a.o = joint_o.data(), a.lse = joint_lse.data();
    if (in.at_once) {
        sdepth::on_cuda::depth_attention_backward({a, grad_o.data(), grad_q.data(), grad_slot.data(), nullptr, nullptr},
                                                  nullptr);
    } else {
        sdepth::on_cuda::depth_attention_backward({a, grad_o.data(), grad_q.data(), nullptr, p.data(), ds.data()},
                                                  nullptr);
        sdepth::DepthSlotGradientArgs<bf16> g;
        g.batch = a.batch, g.heads = a.heads, g.kv_heads = a.kv_heads, g.head_dim = a.head_dim, g.tokens = a.tokens;
        g.slots = a.slots, g.scale = a.scale, g.q_row = a.q_row, g.begin = 0, g.end = a.used, g.readers = 2;
        g.reads[0] = g.reads[1] = {a.q, grad_o.data(), p.data(), ds.data()};
        g.grad_slot = grad_slot.data();
        sdepth::on_cuda::depth_slot_gradients(g, nullptr);
    }
    sdepth::on_cuda::check(cudaDeviceSynchronize(), "depth attention");
    return {o.read(), lse.read(), grad_q.read(), grad_slot.read()};
}

}  // namespace sdepth_test
