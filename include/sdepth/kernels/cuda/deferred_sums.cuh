// SPDX-License-Identifier: MIT
// Sums over blocks that nobody reads before the update: many operations leave some behind, and adding each up at once
// is a kernel of its own, a few microseconds long, that everything after it waits for. Here they wait for each other,
// and one kernel beside the stream adds up those of a whole layer. Rank 5.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <type_traits>
#include <vector>

#include "sdepth/kernels/cuda/reduce.cuh"

namespace sdepth::inline v0::on_cuda {

/// A second stream, for what nobody waits for before `join`.
class side_stream {
  public:
    side_stream() {
        int least = 0, most = 0;
        check(cudaDeviceGetStreamPriorityRange(&least, &most), "stream");
        check(cudaStreamCreateWithPriority(&stream_, cudaStreamNonBlocking, least), "stream");
        for (cudaEvent_t* e : {&forked_, &joined_}) check(cudaEventCreateWithFlags(e, cudaEventDisableTiming), "event");
    }
    ~side_stream() {
        for (const cudaEvent_t e : {forked_, joined_}) cudaEventDestroy(e);
        cudaStreamDestroy(stream_);
    }
    side_stream(const side_stream&) = delete;
    side_stream& operator=(const side_stream&) = delete;

    /// The stream itself, behind everything on `from` so far.
    cudaStream_t fork(cudaStream_t from) {
        check(cudaEventRecord(forked_, from), "event");
        check(cudaStreamWaitEvent(stream_, forked_), "event");
        busy_ = true;
        return stream_;
    }
    /// What follows on `to` waits for everything here.
    void join(cudaStream_t to) {
        if (!busy_) return;
        check(cudaEventRecord(joined_, stream_), "event");
        check(cudaStreamWaitEvent(to, joined_), "event");
        busy_ = false;
    }

  private:
    cudaStream_t stream_ = nullptr;
    cudaEvent_t forked_ = nullptr, joined_ = nullptr;
    bool busy_ = false;
};

/// One of the sums: to[c] += from[0, c] + from[1, c] + ...
struct deferred_sum {
    enum class kind { columns, numbers, doubles };  ///< fp32 columns; fp32 numbers in double; doubles
    kind what;
    const void* from;
    void* to;
    int blocks, columns;
};

namespace detail {

struct deferred_list {
    static constexpr int most = 16;
    deferred_sum sums[most];
    int first[most + 1];  // blocks of threads before each
};

static __global__ void __launch_bounds__(1024) deferred_sums_kernel(const deferred_list list) {
    const int block = static_cast<int>(blockIdx.x);
    int i = 0;
    while (block >= list.first[i + 1]) ++i;
    const deferred_sum& s = list.sums[i];
    if (s.what == deferred_sum::kind::columns)
        add_column_group(static_cast<const float*>(s.from), s.blocks, s.columns, block - list.first[i],
                         static_cast<float*>(s.to));
    else if (s.what == deferred_sum::kind::numbers)
        add_whole_sum(static_cast<const float*>(s.from), s.blocks, static_cast<float*>(s.to));
    else
        add_whole_sum(static_cast<const double*>(s.from), s.blocks, static_cast<double*>(s.to));
}

}  // namespace detail

/// The sums of a layer: gathered, then added up beside the next layer. Two sums of one place keep their order.
class deferred_sums {
  public:
    /// Memory for what blocks leave behind, in two halves that take turns: more than a layer of width 2048 leaves.
    static constexpr std::size_t memory_bytes = std::size_t{16} << 20;

    explicit deferred_sums(side_stream& beside) : beside_(beside) {}

    /// @param at  device memory of `memory_bytes`, 256-byte aligned, any content; the caller's
    void use_memory(void* at) { memory_ = static_cast<std::byte*>(at); }
    /// Some of it, until its sum is added up; null where it has less.
    void* room(std::size_t bytes, cudaStream_t stream) {
        bytes = (bytes + 255) / 256 * 256;
        if (bytes > half) return nullptr;
        if (used_ + bytes > half) finish(stream);
        void* const at = memory_ + (second_ ? half : 0) + used_;
        used_ += bytes;
        return at;
    }
    void add(const deferred_sum& sum) { waiting_.push_back(sum); }
    /// What follows may use the memory of everything beside `stream`: waits for it there, and adds up the sums so far
    /// beside what follows.
    void turn(cudaStream_t stream) {
        beside_.join(stream);
        if (waiting_.empty()) return;
        start(beside_.fork(stream));
        second_ = !second_;
        used_ = 0;
    }
    /// Adds up all sums; what follows on `stream` sees them.
    void finish(cudaStream_t stream) {
        beside_.join(stream);
        start(stream);
        used_ = 0;
    }
    /// Those so far are of no use.
    void forget() {
        waiting_.clear();
        used_ = 0;
    }

  private:
    static constexpr std::size_t half = memory_bytes / 2;
    using list = detail::deferred_list;
    void start(cudaStream_t stream) {
        list now{};
        int n = 0;
        const auto launch = [&] {
            if (n == 0) return;
            detail::deferred_sums_kernel<<<static_cast<unsigned>(now.first[n]), 1024, 0, stream>>>(now);
            check(cudaGetLastError(), "sums");
            n = 0;
        };
        for (const deferred_sum& sum : waiting_) {
            bool again = false;
            for (int i = 0; i < n; ++i) again = again || now.sums[i].to == sum.to;
            if (again || n == list::most) launch();
            now.sums[n] = sum;
            now.first[n + 1] = now.first[n] + static_cast<int>(detail::blocks_of(sum.columns, 32));
            ++n;
        }
        launch();
        waiting_.clear();
    }

    side_stream& beside_;
    std::byte* memory_ = nullptr;
    std::size_t used_ = 0;
    bool second_ = false;
    std::vector<deferred_sum> waiting_;
};

/// Where the blocks of one operation leave sums behind, and who adds them up: the operation at once, from its scratch,
/// or others later.
class block_sums {
  public:
    block_sums(void* scratch, deferred_sums* later = nullptr)  // NOLINT(google-explicit-constructor): scratch is enough
        : scratch_(scratch), later_(later) {}

    /// Memory of `bytes`; what `scratch` has, at least.
    template <class T>
    T* room(std::size_t bytes, cudaStream_t stream) {
        void* const at = later_ == nullptr ? nullptr : later_->room(bytes, stream);
        if (at == nullptr) later_ = nullptr;
        return static_cast<T*>(at == nullptr ? scratch_ : at);
    }
    /// See on_cuda::add_columns.
    void add_columns(const float* partial, int blocks, int columns, float* out, const char* what,
                     cudaStream_t stream) const {
        if (later_ == nullptr) return on_cuda::add_columns(partial, blocks, columns, out, what, stream);
        later_->add({deferred_sum::kind::columns, partial, out, blocks, columns});
    }
    /// See on_cuda::add_sum.
    template <class T>
    void add_sum(const T* x, long long n, T* out, const char* what, cudaStream_t stream) const {
        if (later_ == nullptr) return on_cuda::add_sum(x, n, out, what, stream);
        constexpr bool single = std::is_same_v<T, float>;
        static_assert(single || std::is_same_v<T, double>);
        later_->add(
            {single ? deferred_sum::kind::numbers : deferred_sum::kind::doubles, x, out, static_cast<int>(n), 1});
    }

  private:
    void* scratch_;
    deferred_sums* later_;
};

}  // namespace sdepth::inline v0::on_cuda
