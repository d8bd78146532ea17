// SPDX-License-Identifier: MIT
// Timing of kernels: medians over runs with random inputs and a flushed L2 cache. For the benches only.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <vector>

#include "sdepth/kernels/cuda/error.cuh"

namespace sdepth_bench {

using sdepth::on_cuda::check;
using bf16 = __nv_bfloat16;

// Normal numbers by hashing the index (Box-Muller); never time zeros, they draw less power.
static __global__ void fill_normal(bf16* x, std::size_t n, unsigned seed) {
    const auto hash = [](unsigned a) {
        a = (a ^ 61u ^ a >> 16) * 9u, a ^= a >> 4, a *= 0x27d4eb2du;
        return a ^ a >> 15;
    };
    for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < n;
         i += gridDim.x * std::size_t{blockDim.x}) {
        const unsigned a = hash(static_cast<unsigned>(i) ^ hash(seed * 7919u + 1u)), b = hash(a + 0x9e3779b9u);
        const float r = sqrtf(-2.f * logf((static_cast<float>(a) + 1.f) * 0x1p-32f));
        x[i] = __float2bfloat16(r * cospif(2.f * static_cast<float>(b) * 0x1p-32f));
    }
}

/// Device memory of a bench, freed at its end.
template <class T>
class device_array {
  public:
    explicit device_array(std::size_t n) : size_(n) {
        check(cudaMalloc(&data_, std::max<std::size_t>(n, 1) * sizeof(T)), "bench");
    }
    device_array(std::size_t n, unsigned seed) : device_array(n) { fill_normal<<<1024, 256>>>(data_, n, seed); }
    ~device_array() { cudaFree(data_); }
    device_array(const device_array&) = delete;
    device_array& operator=(const device_array&) = delete;
    T* data() { return data_; }
    std::size_t size() const { return size_; }
    std::vector<T> read() const {
        std::vector<T> y(size_);
        check(cudaMemcpy(y.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost), "bench");
        return y;
    }

  private:
    T* data_ = nullptr;
    std::size_t size_;
};

/// Median milliseconds of `f` on the default stream, the L2 cache overwritten before each run.
template <class F>
double median_ms(F f, int runs = 15, int warm = 3) {
    static device_array<unsigned char> flush(std::size_t{256} << 20);
    cudaEvent_t start, stop;
    check(cudaEventCreate(&start), "bench"), check(cudaEventCreate(&stop), "bench");
    std::vector<double> ms;
    for (int i = 0; i < warm + runs; ++i) {
        check(cudaMemsetAsync(flush.data(), i, flush.size()), "bench");
        check(cudaEventRecord(start), "bench");
        f();
        check(cudaEventRecord(stop), "bench");
        check(cudaEventSynchronize(stop), "bench");
        float t = 0;
        check(cudaEventElapsedTime(&t, start, stop), "bench");
        if (i >= warm) ms.push_back(static_cast<double>(t));
    }
    check(cudaEventDestroy(start), "bench"), check(cudaEventDestroy(stop), "bench");
    std::sort(ms.begin(), ms.end());
    return ms[ms.size() / 2];
}

}  // namespace sdepth_bench
