// SPDX-License-Identifier: MIT
// Device memory of one test: numbers go in as fp64 and come back so, whatever the storage type.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>
#include <vector>

#include "sdepth/kernels/cuda/error.cuh"

namespace sdepth_test {

using bf16 = __nv_bfloat16;

// Device memory for one test, freed at its end.
template <class T>
class buffer {
  public:
    explicit buffer(std::size_t n) : size_(n) {
        sdepth::on_cuda::check(cudaMalloc(&data_, (n + 8) * sizeof(T)), "test memory");
    }
    explicit buffer(const std::vector<int>& x) : buffer(x.size()) {
        sdepth::on_cuda::check(cudaMemcpy(data_, x.data(), x.size() * sizeof(int), cudaMemcpyHostToDevice),
                               "test memory");
    }
    explicit buffer(const std::vector<std::uint8_t>& x) : buffer(x.size()) {
        sdepth::on_cuda::check(cudaMemcpy(data_, x.data(), x.size(), cudaMemcpyHostToDevice), "test memory");
    }
    explicit buffer(const std::vector<double>& x) : buffer(x.size()) {
        std::vector<T> y(x.size());
        for (std::size_t i = 0; i < x.size(); ++i) y[i] = static_cast<T>(static_cast<float>(x[i]));
        sdepth::on_cuda::check(cudaMemcpy(data_, y.data(), y.size() * sizeof(T), cudaMemcpyHostToDevice),
                               "test memory");
    }
    ~buffer() { cudaFree(data_); }
    buffer(const buffer&) = delete;
    buffer& operator=(const buffer&) = delete;

    // All bits set: NaN in fp32 and bf16.
    buffer& poison() {
        sdepth::on_cuda::check(cudaMemset(data_, 0xFF, size_ * sizeof(T)), "test memory");
        return *this;
    }
    T* data() { return data_; }
    std::vector<double> read() const {
        std::vector<T> y(size_);
        sdepth::on_cuda::check(cudaMemcpy(y.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost), "test memory");
        std::vector<double> x(size_);
        for (std::size_t i = 0; i < size_; ++i) x[i] = static_cast<double>(static_cast<float>(y[i]));
        return x;
    }

  private:
    T* data_ = nullptr;
    std::size_t size_;
};

}  // namespace sdepth_test
