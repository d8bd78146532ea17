// SPDX-License-Identifier: MIT
// Memory of the device, and the way of host data into it that never waits for the device. Rank 5.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstring>
#include <memory>
#include <string>

#include "sdepth/error.hpp"
#include "sdepth/kernels/cuda/error.cuh"

namespace sdepth::inline v0::on_cuda {

/// Owned memory of the device, aligned to 256 bytes. Contents are indeterminate.
class device_memory {
  public:
    /// Throws sdepth::error where the device has too little, with what it has.
    explicit device_memory(std::size_t bytes) : bytes_(bytes) {
        std::size_t free = 0, all = 0;
        check(cudaMemGetInfo(&free, &all), "device memory");
        void* data = nullptr;
        if (bytes > free || cudaMalloc(&data, bytes) != cudaSuccess)
            throw error("device memory: " + std::to_string(bytes) + " bytes are not to be had, the device has " +
                        std::to_string(free) + " free of " + std::to_string(all) + "; make batch or model smaller");
        data_.reset(static_cast<std::byte*>(data));
    }
    std::byte* data() const { return data_.get(); }
    std::size_t bytes() const { return bytes_; }

  private:
    struct release {
        void operator()(std::byte* data) const { cudaFree(data); }
    };
    std::unique_ptr<std::byte, release> data_;
    std::size_t bytes_;
};

/// Copies from host memory to the device in order with a stream. The caller's data is free again at once; small copies
/// go through pinned memory, so that the host waits only if it runs more than half of it ahead.
class uploads {
  public:
    uploads() {
        void* room = nullptr;
        check(cudaMallocHost(&room, 2 * half), "pinned memory");
        room_.reset(static_cast<std::byte*>(room));
        for (cudaEvent_t& e : used_) check(cudaEventCreateWithFlags(&e, cudaEventDisableTiming), "event");
    }
    ~uploads() {
        for (const cudaEvent_t e : used_) cudaEventDestroy(e);
    }
    uploads(const uploads&) = delete;
    uploads& operator=(const uploads&) = delete;

    void operator()(void* to, const void* from, std::size_t bytes, cudaStream_t stream) {
        if (bytes > half) {
            check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, stream), "copy to the device");
            check(cudaStreamSynchronize(stream), "copy to the device");
            return;
        }
        if (at_ + bytes > half) {
            check(cudaEventRecord(used_[now_], stream), "event");
            now_ = 1 - now_;
            at_ = 0;
            check(cudaEventSynchronize(used_[now_]), "event");  // over at once before its first use
        }
        std::byte* const room = room_.get() + static_cast<std::size_t>(now_) * half + at_;
        std::memcpy(room, from, bytes);
        check(cudaMemcpyAsync(to, room, bytes, cudaMemcpyHostToDevice, stream), "copy to the device");
        at_ += (bytes + 255) / 256 * 256;
    }

  private:
    static constexpr std::size_t half = std::size_t{8} << 20;
    struct release {
        void operator()(std::byte* data) const { cudaFreeHost(data); }
    };
    std::unique_ptr<std::byte, release> room_;
    cudaEvent_t used_[2] = {};  // last use of each half
    int now_ = 0;
    std::size_t at_ = 0;
};

}  // namespace sdepth::inline v0::on_cuda
