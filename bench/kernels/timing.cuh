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
template <class T>
static __global__ void fill_normal(T* x, std::size_t n, unsigned seed, bool positive) {
    const auto hash = [](unsigned a) {
        a = (a ^ 61u ^ a >> 16) * 9u, a ^= a >> 4, a *= 0x27d4eb2du;
        return a ^ a >> 15;
    };
    for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < n;
         i += gridDim.x * std::size_t{blockDim.x}) {
        const unsigned a = hash(static_cast<unsigned>(i) ^ hash(seed * 7919u + 1u)), b = hash(a + 0x9e3779b9u);
        const float r = sqrtf(-2.f * logf((static_cast<float>(a) + 1.f) * 0x1p-32f));
        const float y = r * cospif(2.f * static_cast<float>(b) * 0x1p-32f);
        x[i] = static_cast<T>(positive ? fabsf(y) : y);
    }
}

/// Device memory of a bench, freed at its end.
template <class T>
class device_array {
  public:
    explicit device_array(std::size_t n) : size_(n) {
        check(cudaMalloc(&data_, std::max<std::size_t>(n, 1) * sizeof(T)), "bench");
    }
    device_array(std::size_t n, unsigned seed, bool positive = false) : device_array(n) {
        fill_normal<<<1024, 256>>>(data_, n, seed, positive);
    }
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

/// Milliseconds of a run: the median, and how far the middle half of the runs lies apart, relative to it.
struct timing {
    double median, spread;
};

// Reads memory, so that the L2 cache holds nothing else and nothing that is still to be written back.
static __global__ void read_all(const uint4* x, std::size_t n, unsigned* out) {
    unsigned sum = 0;
    for (std::size_t i = blockIdx.x * std::size_t{blockDim.x} + threadIdx.x; i < n;
         i += gridDim.x * std::size_t{blockDim.x})
        sum += x[i].x ^ x[i].y ^ x[i].z ^ x[i].w;
    if (sum == 0x9e3779b9u) *out = sum;
}

/// Times `f` on the default stream, the L2 cache filled with other memory before each run.
template <class F>
timing time_ms(F f, int runs = 15, int warm = 3) {
    static device_array<float> flush(std::size_t{128} << 20, 9u);
    cudaEvent_t start, stop;
    check(cudaEventCreate(&start), "bench"), check(cudaEventCreate(&stop), "bench");
    std::vector<double> ms;
    for (int i = 0; i < warm + runs; ++i) {
        read_all<<<1056, 256>>>(reinterpret_cast<const uint4*>(flush.data()), flush.size() / 4,
                                reinterpret_cast<unsigned*>(flush.data()));
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
    const double median = ms[ms.size() / 2];
    return {median, (ms[ms.size() * 3 / 4] - ms[ms.size() / 4]) / median};
}
/// Times what `f(stream)` launches, recorded as a graph: no launch costs of the host.
template <class F>
timing time_graph_ms(const F& f) {
    cudaStream_t stream;
    cudaGraph_t graph;
    cudaGraphExec_t exec;
    check(cudaStreamCreate(&stream), "bench");
    check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "bench");
    f(stream);
    check(cudaStreamEndCapture(stream, &graph), "bench");
    check(cudaGraphInstantiate(&exec, graph, 0), "bench");
    const timing t = time_ms([&] { check(cudaGraphLaunch(exec, nullptr), "bench"); });
    check(cudaGraphExecDestroy(exec), "bench"), check(cudaGraphDestroy(graph), "bench");
    check(cudaStreamDestroy(stream), "bench");
    return t;
}
template <class F>
double median_ms(F f, int runs = 15, int warm = 3) {
    return time_ms(f, runs, warm).median;
}

}  // namespace sdepth_bench
