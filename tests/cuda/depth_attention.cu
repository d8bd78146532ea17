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
    buffer<float> lse(in.lse), joint_lse(in.joint_lse), slot_sum(in.slot_sum);
    buffer<std::uint8_t> mask(in.mask);
    buffer<int> live(in.live), ids(in.ids);
    const std::size_t weights = in.lse.size() * static_cast<std::size_t>(shape.slots);
    buffer<bf16> grad_slot(in.slot.size()), p(weights), ds(weights);
    grad_slot.poison(), p.poison(), ds.poison();

    sdepth::DepthAttentionBackwardArgs<bf16> g;
    auto& a = g.forward;
    a.batch = shape.batch, a.heads = shape.heads, a.kv_heads = shape.kv_heads, a.head_dim = shape.head_dim;
    a.tokens = {shape.tokens.capacity, in.live.empty() ? nullptr : live.data()};
    a.slots = shape.slots, a.used = shape.used, a.scale = shape.scale, a.q_row = shape.q_row;
    a.ids = in.ids.empty() ? nullptr : ids.data(), a.sequence = shape.sequence;
    a.q = q.data(), a.slot = slot.data(), a.mask = in.mask.empty() ? nullptr : mask.data();
    a.o = o.data(), a.lse = lse.data();
    g.grad_o = grad_o.data(), g.grad_q = grad_q.data();
    for_each_range(in, g, [](const auto& call, int, int) {
        sdepth::on_cuda::depth_attention_forward<sdepth::on_cuda::hopper>(call.forward, nullptr);
    });

    a.o = joint_o.data(), a.lse = joint_lse.data();
    if (in.how == slot_gradients::at_once) g.grad_slot = grad_slot.data();
    if (in.how == slot_gradients::added) g.slot_sum = slot_sum.data();
    if (in.how == slot_gradients::later) g.p = p.data(), g.ds = ds.data();
    for_each_range(in, g, [&](const auto& call, int from, int to) {
        sdepth::on_cuda::depth_attention_backward<sdepth::on_cuda::hopper>(call, nullptr);
        if (in.how == slot_gradients::later)
            sdepth::on_cuda::depth_slot_gradients(read_three_times(g, from, to, grad_slot.data()), nullptr);
    });
    sdepth::on_cuda::check(cudaDeviceSynchronize(), "depth attention");
    return {o.read(), lse.read(), grad_q.read(), in.how == slot_gradients::added ? slot_sum.read() : grad_slot.read()};
}

}  // namespace sdepth_test
