// SPDX-License-Identifier: MIT
// The arguments of one operation in device memory: uploads them, and brings back at the end what the operation writes.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <type_traits>
#include <vector>

#include "device_buffer.cuh"
#include "sdepth/precision.hpp"
#include "sdepth/rows.hpp"

namespace sdepth_test {

/// What the CUDA backend stores.
using stored = sdepth::precision<bf16, float, float, bf16, float>;

class device_call {
  public:
    ~device_call() noexcept(false) {
        sdepth::on_cuda::check(cudaDeviceSynchronize(), "test");
        for (const auto& read : reads_) read();
    }
    device_call() = default;
    device_call(const device_call&) = delete;
    device_call& operator=(const device_call&) = delete;

    /// `to` points to the numbers in device memory, rounded; null stays null.
    template <class T, class From>
    void in(const T*& to, const From* from, long long n) {
        T* there = nullptr;
        upload(there, from, n);
        to = there;
    }
    /// The same, and `host` gets what stands there at the end.
    template <class T, class Host>
    void inout(T*& to, Host* host, long long n) {
        upload(to, host, n);
        if (host == nullptr) return;
        reads_.push_back([to, host, n] {
            std::vector<T> y(static_cast<std::size_t>(n));
            sdepth::on_cuda::check(cudaMemcpy(y.data(), to, y.size() * sizeof(T), cudaMemcpyDeviceToHost), "test");
            for (long long i = 0; i < n; ++i) host[i] = widened<Host>(y[static_cast<std::size_t>(i)]);
        });
    }
    sdepth::batch_rows rows(sdepth::batch_rows r) {
        const int* live = nullptr;
        in(live, r.each.live, r.batch);
        r.each.live = live;
        return r;
    }
    void* scratch(std::size_t bytes) {
        auto held = std::make_shared<buffer<unsigned char>>(bytes);
        held->poison();
        held_.push_back(held);
        return held->data();
    }

  private:
    // Every NaN becomes the same one, so that results can be compared bit by bit.
    template <class Host, class T>
    static Host widened(T x) {
        if constexpr (std::is_class_v<T> && !std::is_same_v<T, bf16>) {
            return x;
        } else {
            const auto y = static_cast<std::conditional_t<std::is_same_v<T, bf16>, float, T>>(x);
            return y == y ? static_cast<Host>(y) : std::numeric_limits<Host>::quiet_NaN();
        }
    }
    template <class T, class From>
    void upload(T*& to, const From* from, long long n) {
        to = nullptr;
        if (from == nullptr) return;
        std::vector<T> y(static_cast<std::size_t>(n));
        for (long long i = 0; i < n; ++i)
            if constexpr (std::is_same_v<T, bf16>)
                y[static_cast<std::size_t>(i)] = static_cast<T>(static_cast<float>(from[i]));
            else
                y[static_cast<std::size_t>(i)] = static_cast<T>(from[i]);
        auto held = std::make_shared<buffer<T>>(y.size());
        held_.push_back(held);
        to = held->data();
        sdepth::on_cuda::check(cudaMemcpy(to, y.data(), y.size() * sizeof(T), cudaMemcpyHostToDevice), "test");
    }

    std::vector<std::shared_ptr<void>> held_;
    std::vector<std::function<void()>> reads_;
};

}  // namespace sdepth_test
