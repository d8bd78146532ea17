// SPDX-License-Identifier: MIT
// Launches for attention.cpp.
#include "attention.hpp"

#include "device_buffer.cuh"
#include "sdepth/kernels/cuda/attention.cuh"
#include "sdepth/kernels/cuda/prepared_attention.cuh"
#include "sdepth/precision.hpp"

namespace sdepth_test {

namespace cuda = sdepth::on_cuda;

namespace {

// Inputs and outputs of one problem in device memory, outputs full of NaN.
struct problem {
    buffer<bf16> q, k, v, grad_o;
    buffer<int> first, last, live_queries, live_keys;
    buffer<bf16> o, grad_q, grad_k, grad_v;
    buffer<float> lse;
    sdepth::AttentionArgs<bf16> forward;

    explicit problem(const attention_inputs& in)
        : q(in.q),
          k(in.k),
          v(in.v),
          grad_o(in.grad_o),
          first(in.first),
          last(in.last),
          live_queries(in.live_queries),
          live_keys(in.live_keys),
          o(in.grad_o.size()),
          grad_q(in.q.size()),
          grad_k(in.k.size()),
          grad_v(in.v.size()),
          lse(in.grad_o.size() / static_cast<std::size_t>(in.args.head_dim)) {
        o.poison(), lse.poison(), grad_q.poison(), grad_k.poison(), grad_v.poison();
        const auto& shape = in.args;
        auto& a = forward;
        a.batch = shape.batch, a.heads = shape.heads, a.kv_heads = shape.kv_heads, a.head_dim = shape.head_dim;
        a.queries = {shape.queries.capacity, in.live_queries.empty() ? nullptr : live_queries.data()};
        a.keys = {shape.keys.capacity, in.live_keys.empty() ? nullptr : live_keys.data()};
        a.scale = shape.scale, a.causal = shape.causal, a.window = shape.window;
        a.q_row = shape.q_row, a.kv_row = shape.kv_row;
        a.q = q.data(), a.k = k.data(), a.v = v.data(), a.o = o.data(), a.lse = lse.data();
        if (!in.first.empty()) a.first = first.data(), a.last = last.data();
    }
    sdepth::AttentionBackwardArgs<bf16> backward() {
        return {forward, grad_o.data(), grad_q.data(), grad_k.data(), grad_v.data()};
    }
};

template <class F>
void with_arch(bool portable, F f) {
    portable ? f(cuda::portable{}) : f(cuda::hopper{});
}
void finish() { cuda::check(cudaDeviceSynchronize(), "attention"); }

}  // namespace

attention_outputs attention_on_device(const attention_inputs& in, kernels by) {
    problem p(in);
    buffer<bf16> joint_o(in.joint_o);
    buffer<float> joint_lse(in.joint_lse);
    with_arch(by == kernels::portable, [&](auto arch) {
        using Arch = decltype(arch);
        buffer<unsigned char> scratch(cuda::attention_backward_scratch<Arch>(p.forward));
        scratch.poison();
        if (by != kernels::long_tile)
            cuda::attention_forward<Arch>(p.forward, nullptr);
        else if (p.forward.head_dim == 64)
            cuda::attention_forward_launch<cuda::detail::long_forward_tile<64>>(p.forward, nullptr);
        else
            cuda::attention_forward_launch<cuda::detail::long_forward_tile<128>>(p.forward, nullptr);
        auto backward = p.backward();
        if (!in.joint_o.empty()) backward.forward.o = joint_o.data(), backward.forward.lse = joint_lse.data();
        cuda::attention_backward<Arch>(backward, scratch.data(), nullptr);
        finish();
    });
    return {p.o.read(), p.lse.read(), p.grad_q.read(), p.grad_k.read(), p.grad_v.read()};
}

prepared_outputs prepared_on_device(const attention_inputs& in, const query_preparation& prepared, bool portable) {
    using stored = sdepth::precision<bf16, float, float, bf16, float>;
    problem p(in);
    buffer<bf16> x(prepared.x), grad_x(in.q.size());
    buffer<float> weight(prepared.weight), rstd(prepared.rstd);
    buffer<float> grad_weight(prepared.grad_weight), grad_weight_apart(prepared.grad_weight);
    buffer<int> positions(prepared.positions);
    sdepth::QkPrepareBackwardArgs<stored> together;
    auto& f = together.forward;
    f.rows = {p.forward.batch, p.forward.queries}, f.heads = p.forward.heads, f.head_dim = p.forward.head_dim;
    f.norm = prepared.norm ? sdepth::qk_norm::per_head : sdepth::qk_norm::none, f.rotary = prepared.rotary;
    f.x = x.data(), f.weight = weight.data(), f.rstd = rstd.data();
    f.positions = prepared.positions.empty() ? nullptr : positions.data();
    together.grad_x = grad_x.poison().data(), together.grad_weight = grad_weight.data();
    sdepth::QkPrepareBackwardArgs<stored> apart = together;
    apart.grad_y = apart.grad_x = p.grad_q.data(), apart.grad_weight = grad_weight_apart.data();
    with_arch(portable, [&](auto arch) {
        using Arch = decltype(arch);
        buffer<unsigned char> scratch(cuda::prepared_attention_backward_scratch<Arch>(p.forward));
        buffer<unsigned char> rotary_scratch(cuda::qk_prepare_backward_scratch(f.heads, f.head_dim));
        scratch.poison(), rotary_scratch.poison();
        cuda::attention_forward<Arch>(p.forward, nullptr);
        cuda::prepared_attention_backward<Arch>(p.backward(), together, scratch.data(), nullptr);
        cuda::attention_backward<Arch>(p.backward(), scratch.data(), nullptr);
        cuda::qk_prepare_backward(apart, rotary_scratch.data(), nullptr);
        finish();
    });
    return {grad_x.read(), grad_weight.read(), p.grad_q.read(), grad_weight_apart.read()};
}

}  // namespace sdepth_test
