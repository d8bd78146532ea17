// SPDX-License-Identifier: MIT
// MoDA's depth branch: B = 1, 64 query and 8 KV heads, head size 64, 64 slots. Depth time (forward + backward) over its
// byte bound: keys and values of all slots read once forward and once backward, their gradients written once, q, o and
// grad_o read once each, at the copy rate measured here. One JSON row a line; shares of cuDNN's attention time are
// formed by scripts/bench.sh from the rows in ms.
#include <cmath>
#include <cstdio>

#include "sdepth/kernels/cuda/attention.cuh"
#include "sdepth/kernels/cuda/depth_attention.cuh"
#include "timing.cuh"

namespace {

using namespace sdepth_bench;
using sdepth::on_cuda::hopper;

double copy_rate() {
    device_array<unsigned char> from(std::size_t{1} << 31), to(std::size_t{1} << 31);
    const double ms = median_ms(
        [&] { check(cudaMemcpyAsync(to.data(), from.data(), to.size(), cudaMemcpyDeviceToDevice), "bench"); });
    return 2. * static_cast<double>(to.size()) / ms;  // bytes a millisecond
}

void run(int tokens, double rate) {
    const int heads = 64, kv_heads = 8, dim = 64, slots = 64;
    const std::size_t nq = std::size_t(tokens) * heads * dim, nk = std::size_t(tokens) * kv_heads * dim;
    const std::size_t ns = std::size_t(tokens) * slots * kv_heads * 2 * dim;
    device_array<bf16> q(nq, 1u), k(nk, 2u), v(nk, 3u), grad_o(nq, 4u), o(nq), grad_q(nq), grad_k(nk), grad_v(nk);
    device_array<bf16> slot(ns, 5u), grad_slot(ns);
    device_array<float> lse(nq / dim);
    sdepth::AttentionArgs<bf16> a;
    a.heads = heads, a.kv_heads = kv_heads, a.head_dim = dim, a.queries.capacity = a.keys.capacity = tokens;
    a.scale = 1 / std::sqrt(static_cast<double>(dim));
    a.q = q.data(), a.k = k.data(), a.v = v.data(), a.o = o.data(), a.lse = lse.data();
    sdepth::DepthAttentionArgs<bf16> d;
    d.heads = heads, d.kv_heads = kv_heads, d.head_dim = dim, d.tokens.capacity = tokens, d.slots = d.used = slots;
    d.scale = a.scale, d.q = q.data(), d.slot = slot.data(), d.o = o.data(), d.lse = lse.data();
    device_array<unsigned char> scratch(sdepth::on_cuda::attention_backward_scratch<hopper>(a));

    const auto forward = [&] { sdepth::on_cuda::attention_forward<hopper>(a, nullptr); };
    const auto depth_forward = [&] { sdepth::on_cuda::depth_attention_forward<hopper>(d, nullptr); };
    const auto backward = [&] {
        sdepth::on_cuda::attention_backward<hopper>({a, grad_o.data(), grad_q.data(), grad_k.data(), grad_v.data()},
                                                    scratch.data(), nullptr);
    };
    const auto depth_backward = [&] {
        sdepth::on_cuda::depth_attention_backward<hopper>(
            {d, grad_o.data(), grad_q.data(), grad_slot.data(), nullptr, nullptr}, nullptr);
    };
    forward(), depth_forward(), backward(), depth_backward();
    check(cudaDeviceSynchronize(), "bench");
    for (const bf16 x : grad_slot.read())
        if (!std::isfinite(__bfloat162float(x)))
            throw sdepth::error("bench: a gradient is not finite; run the GPU tests first");

    const double f = median_ms(depth_forward), b = median_ms(depth_backward);
    const double total = median_ms([&] { forward(), depth_forward(), backward(), depth_backward(); });
    const double bytes = 2. * (3. * static_cast<double>(ns) + 3. * static_cast<double>(nq));
    std::printf("{\"name\": \"moda/depth_over_bytes/T%d\", \"ours\": %.4f, \"unit\": \"share\"}\n", tokens,
                (f + b) * rate / bytes);
    std::printf("{\"name\": \"moda/depth_ms/T%d\", \"ours\": %.4f, \"unit\": \"ms\", \"fwd\": %.4f, \"bwd\": %.4f}\n",
                tokens, f + b, f, b);
    std::printf("{\"name\": \"moda/total_ms/T%d\", \"ours\": %.4f, \"unit\": \"ms\"}\n", tokens, total);
    std::fflush(stdout);
}

}  // namespace

int main() {
    const double rate = copy_rate();
    std::printf("{\"name\": \"copy\", \"ours\": %.3f, \"unit\": \"TB/s\"}\n", rate / 1e9);
    for (const int tokens : {1024, 4096, 16384, 65536}) run(tokens, rate);
}
