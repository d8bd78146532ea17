// SPDX-License-Identifier: MIT
// Random numbers and bfloat16 conversions on the GPU, copied back; the assertions are in random.cpp.
#include <cuda_bf16.h>

#include <stdexcept>

#include "cuda/random.hpp"
#include "sdepth/random.hpp"

namespace {

void check(cudaError_t code) {
    if (code != cudaSuccess) throw std::runtime_error(cudaGetErrorString(code));
}

__global__ void normals(std::uint64_t seed, std::uint64_t count, double* out) {
    const std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x;
    if (i < count) out[i] = sdepth::random_normal(seed, sdepth::random_use::check, 3, i);
}

__global__ void convert(const float* in, std::uint64_t count, std::uint16_t* out) {
    const std::uint64_t i = blockIdx.x * std::uint64_t{blockDim.x} + threadIdx.x;
    if (i < count) out[i] = __bfloat16_as_ushort(__float2bfloat16_rn(in[i]));
}

unsigned blocks(std::uint64_t count) { return static_cast<unsigned>((count + 255) / 256); }

}  // namespace

std::vector<double> gpu_normals(std::uint64_t seed, std::uint64_t count) {
    double* device = nullptr;
    check(cudaMalloc(&device, count * sizeof(double)));
    normals<<<blocks(count), 256>>>(seed, count, device);
    check(cudaGetLastError());
    std::vector<double> out(count);
    check(cudaMemcpy(out.data(), device, count * sizeof(double), cudaMemcpyDeviceToHost));
    check(cudaFree(device));
    return out;
}

std::vector<std::uint16_t> gpu_bfloat16(const std::vector<float>& values) {
    float* in = nullptr;
    std::uint16_t* device = nullptr;
    check(cudaMalloc(&in, values.size() * sizeof(float)));
    check(cudaMalloc(&device, values.size() * sizeof(std::uint16_t)));
    check(cudaMemcpy(in, values.data(), values.size() * sizeof(float), cudaMemcpyHostToDevice));
    convert<<<blocks(values.size()), 256>>>(in, values.size(), device);
    check(cudaGetLastError());
    std::vector<std::uint16_t> out(values.size());
    check(cudaMemcpy(out.data(), device, out.size() * sizeof(std::uint16_t), cudaMemcpyDeviceToHost));
    check(cudaFree(in));
    check(cudaFree(device));
    return out;
}
