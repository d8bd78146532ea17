// SPDX-License-Identifier: MIT
// Attention kernels: TFLOP/s of the causal half (backward counted 2.5 times the forward), one JSON row a line. Rows of
// the same names by PyTorch are merged by scripts/bench.sh. Results are checked first: every
// output is finite, and grad_v sums to grad_o over the keys, as P sums to one.
#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>

#include "sdepth/kernels/cuda/attention.cuh"
#include "timing.cuh"

namespace {

using namespace sdepth_bench;
using sdepth::on_cuda::hopper;
using sdepth::on_cuda::portable;

void require(bool good, const char* what) {
    if (!good) throw sdepth::error(std::string("bench: ") + what + "; run the GPU tests first");
}

template <class Arch>
void run(const char* family, int batch, int length, int heads, int kv_heads, int dim) {
    sdepth::AttentionArgs<bf16> a;
    a.batch = batch, a.heads = heads, a.kv_heads = kv_heads, a.head_dim = dim;
    a.queries.capacity = a.keys.capacity = length;
    a.scale = 1 / std::sqrt(static_cast<double>(dim));
    const std::size_t nq = std::size_t(batch) * length * heads * dim, nk = std::size_t(batch) * length * kv_heads * dim;
    device_array<bf16> q(nq, 1u), k(nk, 2u), v(nk, 3u), grad_o(nq, 4u), o(nq), grad_q(nq), grad_k(nk), grad_v(nk);
    device_array<float> lse(nq / dim);
    a.q = q.data(), a.k = k.data(), a.v = v.data(), a.o = o.data(), a.lse = lse.data();
    const sdepth::AttentionBackwardArgs<bf16> g{a, grad_o.data(), grad_q.data(), grad_k.data(), grad_v.data()};
    device_array<unsigned char> scratch(sdepth::on_cuda::attention_backward_scratch<Arch>(a));

    const auto forward = [&] { sdepth::on_cuda::attention_forward<Arch>(a, nullptr); };
    const auto backward = [&] { sdepth::on_cuda::attention_backward<Arch>(g, scratch.data(), nullptr); };
    for (auto* x : {&o, &grad_q, &grad_k, &grad_v})
        check(cudaMemset(x->data(), 0xFF, x->size() * sizeof(bf16)), "bench");
    forward(), backward();
    check(cudaDeviceSynchronize(), "bench");
    for (const auto* x : {&o, &grad_q, &grad_k, &grad_v})
        for (const bf16 e : x->read()) require(std::isfinite(__bfloat162float(e)), "an output is not finite");
    // The sum over keys of grad_v is the sum over queries of grad_o, for each KV head and column: P sums to one.
    double want = 0, got = 0, size = 0;
    const auto y = grad_o.read(), z = grad_v.read();
    for (std::size_t i = 0; i < nq; i += heads * dim) want += __bfloat162float(y[i]) + __bfloat162float(y[i + dim]);
    for (std::size_t i = 0; i < nk; i += kv_heads * dim)
        got += __bfloat162float(z[i]), size += std::abs(__bfloat162float(z[i]));
    require(heads != 2 * kv_heads || std::abs(want - got) < .02 * size, "grad_v does not sum to grad_o");

    const double flops = 2. * batch * heads * dim * length * length, ms_f = median_ms(forward),
                 ms_b = median_ms(backward);
    const auto row = [&](const char* part, double f, double ms) {
        std::printf("{\"name\": \"%s/%s/%dx%d/q%dk%d/d%d\", \"ours\": %.1f, \"unit\": \"TFLOP/s\", \"ms\": %.4f}\n",
                    family, part, batch, length, heads, kv_heads, dim, f / ms / 1e9, ms);
        std::fflush(stdout);
    };
    row("fwd", flops, ms_f);
    row("bwd", 2.5 * flops, ms_b);
    row("fwd+bwd", 3.5 * flops, ms_f + ms_b);
}

// Writes inputs and results as raw bf16 for scripts/attention_accuracy.py.
void dump(const std::string& folder, unsigned seed, int length, int dim) {
    const int heads = 16, kv_heads = 8;
    sdepth::AttentionArgs<bf16> a;
    a.heads = heads, a.kv_heads = kv_heads, a.head_dim = dim, a.queries.capacity = a.keys.capacity = length;
    a.scale = 1 / std::sqrt(static_cast<double>(dim));
    const std::size_t nq = std::size_t(length) * heads * dim, nk = std::size_t(length) * kv_heads * dim;
    device_array<bf16> q(nq, 4 * seed), k(nk, 4 * seed + 1), v(nk, 4 * seed + 2), grad_o(nq, 4 * seed + 3);
    device_array<bf16> o(nq), grad_q(nq), grad_k(nk), grad_v(nk);
    device_array<float> lse(nq / dim);
    device_array<unsigned char> scratch(sdepth::on_cuda::attention_backward_scratch<hopper>(a));
    a.q = q.data(), a.k = k.data(), a.v = v.data(), a.o = o.data(), a.lse = lse.data();
    sdepth::on_cuda::attention_forward<hopper>(a, nullptr);
    sdepth::on_cuda::attention_backward<hopper>({a, grad_o.data(), grad_q.data(), grad_k.data(), grad_v.data()},
                                                scratch.data(), nullptr);
    const device_array<bf16>* const arrays[] = {&q, &k, &v, &grad_o, &o, &grad_q, &grad_k, &grad_v};
    const char* const names[] = {"q", "k", "v", "grad_o", "o", "grad_q", "grad_k", "grad_v"};
    for (int i = 0; i < 8; ++i) {
        const auto x = arrays[i]->read();
        std::ofstream(folder + "/" + names[i], std::ios::binary)
            .write(reinterpret_cast<const char*>(x.data()), static_cast<std::streamsize>(x.size() * sizeof(bf16)));
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc == 6 && std::string(argv[1]) == "--dump") {
        dump(argv[2], static_cast<unsigned>(std::stoi(argv[3])), std::stoi(argv[4]), std::stoi(argv[5]));
        return 0;
    }
    run<hopper>("attention", 1, 32768, 16, 8, 128);
    run<hopper>("attention", 1, 32768, 16, 8, 64);
    run<hopper>("attention", 8, 4096, 16, 8, 128);
    run<hopper>("attention", 8, 4096, 16, 8, 64);
    run<hopper>("attention", 1, 4096, 16, 8, 128);
    run<hopper>("attention", 1, 2048, 16, 8, 128);
    run<hopper>("attention", 1, 4096, 64, 8, 64);
    run<hopper>("attention", 1, 16384, 64, 8, 64);
    run<portable>("attention_portable", 1, 32768, 16, 8, 128);
    run<portable>("attention_portable", 1, 32768, 16, 8, 64);
    run<portable>("attention_portable", 8, 4096, 16, 8, 128);
    run<portable>("attention_portable", 8, 4096, 16, 8, 64);
}
