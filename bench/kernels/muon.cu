// SPDX-License-Identifier: MIT
// Newton-Schulz of matrices [1024, 3072], as many at a time as the backend takes; milliseconds a matrix, and of a whole
// Muon step a matrix. One JSON row a line. The result is looked at first: its singular values lie near 1, so that the
// sum of its squares is near the lesser side.
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "sdepth/kernels/cuda/muon.cuh"
#include "sdepth/precision.hpp"
#include "timing.cuh"

namespace {

using namespace sdepth_bench;
namespace cuda = sdepth::on_cuda;
using stored = sdepth::precision<bf16, float, float, bf16, float>;

}  // namespace

int main() {
    constexpr int rows = 1024, cols = 3072;
    constexpr std::size_t size = std::size_t{rows} * cols;
    device_array<unsigned char> space(cuda::products::workspace_bytes);
    cuda::products multiply(space.data());
    for (const int together : {1, 4, 16}) {
        const std::size_t all = size * static_cast<std::size_t>(together);
        device_array<bf16> x(all, 1u), turned(all), gram(std::size_t{rows} * rows * std::size_t(together)),
            poly(gram.size());
        const auto run = [&](cudaStream_t stream) {
            return cuda::newton_schulz(rows, cols, together, 5, x.data(), turned.data(), static_cast<long long>(size),
                                       gram.data(), poly.data(), static_cast<long long>(rows) * rows, multiply, stream);
        };
        // X over its norm first, as Muon does; five steps leave it in `turned`.
        std::vector<bf16> start = x.read();
        for (bf16& e : start) e = __float2bfloat16(__bfloat162float(e) / std::sqrt(static_cast<float>(size)));
        check(cudaMemcpy(x.data(), start.data(), all * sizeof(bf16), cudaMemcpyHostToDevice), "bench");
        run(nullptr);
        double squares = 0;
        for (const bf16 e : turned.read())
            squares += static_cast<double>(__bfloat162float(e)) * static_cast<double>(__bfloat162float(e));
        if (!(std::abs(squares / (rows * together) - 1) < .3))
            throw sdepth::error("bench: Newton-Schulz left no orthogonal matrix; run the GPU tests first");
        const auto row = [&](const std::string& name, const timing& t) {
            if (together != 16) {
                std::printf("# %s, %d together: %.4f ms\n", name.c_str(), together, t.median / together);
                return;
            }
            std::printf(
                "{\"name\": \"%s\", \"ours\": %.4f, \"unit\": \"ms\", \"spread\": %.3f, \"together\": %d, \"TFLOP/s\": "
                "%.0f}\n",
                name.c_str(), t.median / together, t.spread, together,
                5. * (4. * rows * size + 2. * rows * double(rows) * rows) * together / t.median / 1e9);
            std::fflush(stdout);
        };
        row("newton_schulz/1024x3072", time_ms([&] { run(nullptr); }));

        device_array<float> master(all, 1u), grad(all, 2u), first(all, 3u);
        device_array<bf16> weight(all),
            scratch(static_cast<std::size_t>(sdepth::muon_scratch(rows, cols)) * std::size_t(together));
        device_array<sdepth::update_scalars> scalars(1);
        const sdepth::update_scalars s{.rate = 1e-3};
        check(cudaMemcpy(scalars.data(), &s, sizeof(s), cudaMemcpyHostToDevice), "bench");
        const sdepth::MuonArgs<stored> a{.layers = together,
                                         .stride = static_cast<long long>(size),
                                         .grad_stride = static_cast<long long>(size),
                                         .rows = rows,
                                         .cols = cols,
                                         .scalars = scalars.data(),
                                         .master = master.data(),
                                         .weight = weight.data(),
                                         .grad = grad.data(),
                                         .first = first.data(),
                                         .scratch = scratch.data(),
                                         .together = together};
        row("muon_step/1024x3072", time_ms([&] { cuda::muon(a, multiply, nullptr); }));
    }
}
