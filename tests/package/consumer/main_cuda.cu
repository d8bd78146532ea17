// SPDX-License-Identifier: MIT
// A program of a user's that is compiled for an A100 and for an H100 at once: on the latter it runs the kernels that
// are tuned for it, here the selection by a cluster of blocks, and checks what they chose. It starts without a GPU too.
#include <cublasLt.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

#include "sdepth/kernels/cuda/select.cuh"
#include "sdepth/precision.hpp"
#include "sdepth/version.hpp"

namespace {

using stored = sdepth::precision<__nv_bfloat16, float, float, __nv_bfloat16, float>;
constexpr int rows = 4096, sparsity = 8, chosen = rows / sparsity;

// The rows that the kernels for `Arch` choose.
template <class Arch>
std::vector<int> choose(const std::vector<float>& logits) {
    float *s = nullptr, *u = nullptr;
    int *ids = nullptr, *live = nullptr;
    void* scratch = nullptr;
    const auto check = [](cudaError_t status) { sdepth::on_cuda::check(status, "consumer"); };
    check(cudaMalloc(&s, rows * sizeof(float)));
    check(cudaMalloc(&u, rows * sizeof(float)));
    check(cudaMalloc(&ids, chosen * sizeof(int)));
    check(cudaMalloc(&live, sizeof(int)));
    check(cudaMalloc(&scratch, sdepth::on_cuda::select_scratch(1, rows, false)));
    check(cudaMemcpy(s, logits.data(), rows * sizeof(float), cudaMemcpyHostToDevice));
    check(cudaMemset(ids, -1, chosen * sizeof(int)));
    const sdepth::SelectArgs<stored> args{.rows = {1, {rows}},
                                          .capacity = chosen,
                                          .sparsity = sparsity,
                                          .biased = false,
                                          .logits = s,
                                          .u = u,
                                          .ids = ids,
                                          .live = live};
    sdepth::on_cuda::select<Arch>(args, scratch, nullptr);
    std::vector<int> out(chosen);
    check(cudaMemcpy(out.data(), ids, chosen * sizeof(int), cudaMemcpyDeviceToHost));
    for (void* p :
         {static_cast<void*>(s), static_cast<void*>(u), static_cast<void*>(ids), static_cast<void*>(live), scratch})
        check(cudaFree(p));
    return out;
}

}  // namespace

int main() try {
    static_assert(__cplusplus >= 202002L);
    std::printf("sdepth %s, cuBLASLt %zu\n", SDEPTH_VERSION_STRING, cublasLtGetVersion());
    int devices = 0, major = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices == 0) {
        std::printf("no GPU here\n");
        return 0;
    }
    cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0);
    std::vector<float> logits(rows);
    for (int i = 0; i < rows; ++i) logits[static_cast<std::size_t>(i)] = static_cast<float>(i * 2654435761u % 10007u);
    std::vector<int> want(rows);
    std::iota(want.begin(), want.end(), 0);
    std::stable_sort(want.begin(), want.end(), [&](int i, int j) {
        return logits[static_cast<std::size_t>(i)] > logits[static_cast<std::size_t>(j)];
    });
    std::sort(want.begin(), want.begin() + chosen);
    want.resize(chosen);
    const bool portable = choose<sdepth::on_cuda::portable>(logits) == want;
    const bool hopper = major != 9 || choose<sdepth::on_cuda::hopper>(logits) == want;
    std::printf("portable kernel %s; Hopper's %s\n", portable ? "right" : "WRONG",
                major != 9 ? "not for this GPU"
                : hopper   ? "right"
                           : "WRONG");
    return portable && hopper ? 0 : 1;
} catch (const sdepth::error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
