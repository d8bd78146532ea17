// SPDX-License-Identifier: MIT
// Launches for attention.cpp.
#include "attention.hpp"

#include "device_buffer.cuh"
#include "sdepth/kernels/cuda/attention.cuh"

namespace sdepth_test {

using sdepth::on_cuda::check;

attention_outputs attention_on_device(const attention_inputs& in, bool portable) {
    const auto& shape = in.args;
    buffer<bf16> q(in.q), k(in.k), v(in.v), grad_o(in.grad_o);
    buffer<int> first(in.first), last(in.last), live_queries(in.live_queries), live_keys(in.live_keys);
    buffer<bf16> o(in.grad_o.size()), grad_q(in.q.size()), grad_k(in.k.size()), grad_v(in.v.size());
    buffer<float> lse(in.grad_o.size() / static_cast<std::size_t>(shape.head_dim));
    o.poison(), lse.poison(), grad_q.poison(), grad_k.poison(), grad_v.poison();

    sdepth::AttentionArgs<bf16> a;
    a.batch = shape.batch, a.heads = shape.heads, a.kv_heads = shape.kv_heads, a.head_dim = shape.head_dim;
    a.queries = {shape.queries.capacity, in.live_queries.empty() ? nullptr : live_queries.data()};
    a.keys = {shape.keys.capacity, in.live_keys.empty() ? nullptr : live_keys.data()};
    a.scale = shape.scale, a.causal = shape.causal, a.window = shape.window;
    a.q_row = shape.q_row, a.kv_row = shape.kv_row;
    a.q = q.data(), a.k = k.data(), a.v = v.data(), a.o = o.data(), a.lse = lse.data();
    if (!in.first.empty()) a.first = first.data(), a.last = last.data();
    const sdepth::AttentionBackwardArgs<bf16> g{a, grad_o.data(), grad_q.data(), grad_k.data(), grad_v.data()};
    const auto run = [&](auto arch) {
        using Arch = decltype(arch);
        buffer<unsigned char> scratch(sdepth::on_cuda::attention_backward_scratch<Arch>(a));
        scratch.poison();
        sdepth::on_cuda::attention_forward<Arch>(a, nullptr);
        sdepth::on_cuda::attention_backward<Arch>(g, scratch.data(), nullptr);
        check(cudaDeviceSynchronize(), "attention");
    };
    portable ? run(sdepth::on_cuda::portable{}) : run(sdepth::on_cuda::hopper{});
    return {o.read(), lse.read(), grad_q.read(), grad_k.read(), grad_v.read()};
}

}  // namespace sdepth_test
