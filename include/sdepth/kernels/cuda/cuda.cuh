// SPDX-License-Identifier: MIT
// The CUDA backend: every operation of dense, sparse-depth and depth-attention models on one GPU, memory, and recorded
// steps. Rank 5.
//
// bfloat16 storage; fp32 sums, statistics, gradients of weights, moments and master weights. Everything goes to one
// stream in the order of the calls; only `from_device` waits for it. No operation takes memory: what they need beside
// their arguments is the workspace, a part of the plan.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>
#include <nvtx3/nvToolsExt.h>

#include <algorithm>
#include <cstddef>
#include <iterator>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "sdepth/dims.hpp"
#include "sdepth/kernels/cuda/attention.cuh"
#include "sdepth/kernels/cuda/decode.cuh"
#include "sdepth/kernels/cuda/deferred_sums.cuh"
#include "sdepth/kernels/cuda/depth_attention.cuh"
#include "sdepth/kernels/cuda/depth_slots.cuh"
#include "sdepth/kernels/cuda/ends.cuh"
#include "sdepth/kernels/cuda/ffn.cuh"
#include "sdepth/kernels/cuda/graph.cuh"
#include "sdepth/kernels/cuda/initial.cuh"
#include "sdepth/kernels/cuda/linear.cuh"
#include "sdepth/kernels/cuda/memory.cuh"
#include "sdepth/kernels/cuda/muon.cuh"
#include "sdepth/kernels/cuda/norm.cuh"
#include "sdepth/kernels/cuda/prepared_attention.cuh"
#include "sdepth/kernels/cuda/products.cuh"
#include "sdepth/kernels/cuda/rotary.cuh"
#include "sdepth/kernels/cuda/route.cuh"
#include "sdepth/kernels/cuda/route_version.cuh"
#include "sdepth/kernels/cuda/route_version_logits.cuh"
#include "sdepth/kernels/cuda/select.cuh"
#include "sdepth/kernels/cuda/update.cuh"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0 {

/// What the CUDA backend stores.
using cuda_precision = precision<__nv_bfloat16, float, float, __nv_bfloat16, float>;

/// How a CUDA backend works.
struct cuda_settings {
    int device = 0;
    bool graphs = true;  ///< repeated steps are recorded and replayed; false: each operation is started by itself
    bool aside = true;   ///< gradients of weights over few rows, and of vectors, are summed beside what follows
};

/// The backend.
/// @tparam Arch  on_cuda::hopper, or on_cuda::portable for any GPU from sm_80 on
template <class Arch = on_cuda::hopper>
class cuda {
  public:
    using precision = cuda_precision;
    using memory = on_cuda::device_memory;
    template <class Key>
    using recording = on_cuda::recording<Key>;
    /// A named stretch of operations, as profilers show it (NVTX) where operations are started one by one.
    class range {
      public:
        explicit range(const std::string& name) { nvtxRangePushA(name.c_str()); }
        ~range() { nvtxRangePop(); }
        range(const range&) = delete;
        range& operator=(const range&) = delete;
    };

    /// Rows of logits that exist at a time.
    static constexpr long long logit_rows = 4096;
    /// Sums of route_version_backward.
    static constexpr int route_parts = on_cuda::route_parts;
    /// Matrices that Muon works on at the same time.
    static constexpr int muon_together = 8;

    /// Bytes that operations need beside their arguments, in a model of sizes `d` in run `r`.
    static constexpr long long workspace_bytes(const Dims& d, const Run& r) {
        return static_cast<long long>(2 * on_cuda::products::workspace_bytes + on_cuda::deferred_sums::memory_bytes +
                                      scratch_bytes(d, r));
    }

    explicit cuda(cuda_settings settings = {}) : settings_(on_its_device(settings)) {
        if constexpr (!std::is_same_v<Arch, on_cuda::portable>) on_cuda::require_hopper("cuda");
        int least = 0, most = 0;
        on_cuda::check(cudaDeviceGetStreamPriorityRange(&least, &most), "stream");
        for (cudaStream_t* s : {&stream_, &branch_})
            on_cuda::check(cudaStreamCreateWithPriority(s, cudaStreamNonBlocking, most), "stream");
    }
    ~cuda() {
        for (const cudaStream_t s : {stream_, branch_}) cudaStreamDestroy(s);
    }
    cuda(const cuda&) = delete;
    cuda& operator=(const cuda&) = delete;

    cudaStream_t stream() const { return stream_; }
    /// Sets the workspace of the operations that follow: `workspace_bytes`, 256-byte aligned.
    void use_workspace(void* at) {
        auto* const begin = static_cast<std::byte*>(at);
        multiply_.use_workspace(begin);
        multiply_aside_.use_workspace(begin + on_cuda::products::workspace_bytes);
        deferred_.use_memory(begin + 2 * on_cuda::products::workspace_bytes);
        scratch_ = begin + 2 * on_cuda::products::workspace_bytes + on_cuda::deferred_sums::memory_bytes;
    }
    /// What follows may change whatever the operations so far read: waits, on the device, for those beside the stream.
    void join() { deferred_.turn(stream_); }
    /// Runs `body`, or replays what it did when it was recorded with this key.
    template <class Key, class F>
    void repeat(recording<Key>& place, const Key& key, F body) {
        const auto whole = [&] {
            const repeating within(*this);
            body();
            deferred_.finish(stream_);
        };
        settings_.graphs ? place.run(stream_, key, whole) : whole();
    }
    /// Calls body(rows) with the least of `rooms`, rising, in which live[b] rows of each sequence find room. Where
    /// operations are recorded, with each of them, and a replay runs what belongs to the least.
    template <class F>
    void fitting(const int* live, int batch, const int* rooms, int steps, F body) {
        on_cuda::room_list list{};
        if (steps < 1 || steps > static_cast<int>(std::size(list.rows)))
            throw error("fitting: 1 to 40 rooms are possible");
        std::copy_n(rooms, steps, list.rows);
        list.size = steps;
        if (!on_cuda::is_recording(stream_)) {
            std::vector<int> counts(static_cast<std::size_t>(batch));
            from_device(counts.data(), live, counts.size() * sizeof(int));
            body(rooms[list.least_for(*std::max_element(counts.begin(), counts.end()))]);
            return;
        }
        on_cuda::record_rooms(stream_, branch_, live, batch, list, [&](int rows) {
            std::swap(stream_, branch_);
            try {
                body(rows);
            } catch (...) {
                std::swap(stream_, branch_);
                throw;
            }
            std::swap(stream_, branch_);
        });
    }
    /// Waits for everything so far.
    void wait() { on_cuda::check(cudaStreamSynchronize(stream_), "GPU"); }

    memory allocate(std::size_t bytes) { return memory(bytes); }
    void zero(void* to, std::size_t bytes) { on_cuda::check(cudaMemsetAsync(to, 0, bytes, stream_), "zero"); }
    void zero_rows(void* to, std::size_t bytes, std::size_t stride, std::size_t rows) {
        on_cuda::check(cudaMemset2DAsync(to, stride, 0, bytes, rows, stream_), "zero");
    }
    void copy(void* to, const void* from, std::size_t bytes) {
        on_cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice, stream_), "copy");
    }
    void to_device(void* to, const void* from, std::size_t bytes) { upload_(to, from, bytes, stream_); }
    void from_device(void* to, const void* from, std::size_t bytes) {
        on_cuda::check(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, stream_), "copy from the device");
        wait();
    }

    void linear(const LinearArgs<precision>& a) { on_cuda::linear(a, multiply_, stream_); }
    void linear_backward(const LinearBackwardArgs<precision>& a) {
        on_cuda::linear_backward_clear(a, stream_);
        if (settings_.aside && a.forward.rows.capacity() <= rows_aside) {
            // Nobody waits for these gradients before the update, and over few rows they leave most of the device idle.
            on_cuda::linear_backward_weight(a, multiply_aside_, beside_.fork(stream_));
        } else {
            on_cuda::linear_backward_weight(a, multiply_, stream_);
        }
        on_cuda::linear_backward_rows(a, multiply_, sums(), stream_);
    }

    void rms_norm(const RmsNormArgs<precision>& a) { on_cuda::rms_norm(a, stream_); }
    void rms_norm_backward(const RmsNormBackwardArgs<precision>& a) { on_cuda::rms_norm_backward(a, sums(), stream_); }
    void gather(const GatherArgs<precision>& a) { on_cuda::gather(a, stream_); }
    void gather_rms_norm(const GatherArgs<precision>& g, const RmsNormArgs<precision>& a) {
        on_cuda::gather_rms_norm(g, a, stream_);
    }
    void add_rms_norm(const AddArgs<precision>& sum, const RmsNormArgs<precision>& a) {
        on_cuda::add_rms_norm(sum, a, stream_);
    }
    void scatter(const ScatterArgs<precision>& a) { on_cuda::scatter(a, stream_); }
    void add(const AddArgs<precision>& a) { on_cuda::add(a, stream_); }

    void qk_prepare(const QkPrepareArgs<precision>& a) { on_cuda::qk_prepare(a, stream_); }
    void qk_prepare_backward(const QkPrepareBackwardArgs<precision>& a) {
        on_cuda::qk_prepare_backward(a, sums(), stream_);
    }
    void attention(const AttentionArgs<__nv_bfloat16>& a) {
        a.keys.capacity == 0 ? on_cuda::attention_to_nothing(a, stream_) : on_cuda::attention_forward<Arch>(a, stream_);
    }
    void attention_backward(const AttentionBackwardArgs<__nv_bfloat16>& a) {
        on_cuda::attention_backward<Arch>(a, scratch_, stream_);
    }
    void prepared_attention_backward(const AttentionBackwardArgs<__nv_bfloat16>& a,
                                     const QkPrepareBackwardArgs<precision>& queries) {
        on_cuda::prepared_attention_backward<Arch>(a, queries, scratch_, stream_, later());
    }

    void depth_attention(const DepthAttentionArgs<__nv_bfloat16>& a) {
        on_cuda::depth_attention_forward<Arch>(a, stream_);
    }
    void depth_attention_backward(const DepthAttentionBackwardArgs<__nv_bfloat16>& a) {
        on_cuda::depth_attention_backward<Arch>(a, stream_);
    }
    void write_slot(const WriteSlotArgs<precision>& a) { on_cuda::write_slot(a, stream_); }
    void slot_gradient(const SlotGradientArgs<precision>& a) { on_cuda::slot_gradient(a, stream_); }
    void depth_mass(const DepthMassArgs<precision>& a) { on_cuda::depth_mass(a, scratch_, stream_); }

    void swiglu(const SwigluArgs<precision>& a) { on_cuda::swiglu(a, stream_); }
    void swiglu_backward(const SwigluBackwardArgs<precision>& a) { on_cuda::swiglu_backward(a, stream_); }
    void activation(const ActivationArgs<precision>& a) { on_cuda::activation(a, stream_); }
    void activation_backward(const ActivationBackwardArgs<precision>& a) { on_cuda::activation_backward(a, stream_); }

    void embed(const EmbedArgs<precision>& a) { on_cuda::embed(a, stream_); }
    void embed_backward(const EmbedBackwardArgs<precision>& a) { on_cuda::embed_backward(a, stream_); }
    void head_loss(const HeadLossArgs<precision>& a) { on_cuda::head_loss(a, multiply_, scratch_, stream_); }

    void route_logits(const RouteLogitsArgs<precision>& a) { on_cuda::route_logits(a, stream_); }
    void route_logits_backward(const RouteLogitsBackwardArgs<precision>& a) {
        on_cuda::route_logits_backward(a, sums(), stream_);
    }
    void route_version_logits(const RouteVersionLogitsArgs<precision>& a) { on_cuda::route_version_logits(a, stream_); }
    void route_version_backward(const RouteVersionBackwardArgs<precision>& a) {
        on_cuda::route_version_backward(a, stream_);
    }
    void select(const SelectArgs<precision>& a) { on_cuda::select<Arch>(a, scratch_, stream_); }
    void visibility(const VisibilityArgs& a) { on_cuda::visibility(a, stream_); }
    void scatter_residual(const ScatterResidualArgs<precision>& a) { on_cuda::scatter_residual(a, stream_); }
    void scatter_residual_backward(const ScatterResidualBackwardArgs<precision>& a) {
        on_cuda::scatter_residual_backward(a, sums(), stream_);
    }
    void route_loss(const RouteLossArgs<precision>& a) { on_cuda::route_loss(a, sums(), stream_); }
    void positions(const PositionsArgs& a) { on_cuda::positions(a, stream_); }
    void cache(const CacheArgs<precision>& a) { on_cuda::cache(a, stream_); }
    void track_cut(const TrackCutArgs<precision>& a) { on_cuda::track_cut(a, stream_); }

    void initialise(const InitialArgs<precision>& a) { on_cuda::initialise(a, stream_); }
    void squares(const SquaresArgs<precision>& a) { on_cuda::squares(a, scratch_, stream_); }
    void begin_update(const BeginUpdateArgs& a) { on_cuda::begin_update(a, stream_); }
    void adamw(const AdamwArgs<precision>& a) { on_cuda::adamw(a, stream_); }
    void muon(const MuonArgs<precision>& a) { on_cuda::muon(a, multiply_, stream_); }

  private:
    static constexpr long long rows_aside = 8192;

    // Before the members that belong to a device are made.
    static cuda_settings on_its_device(const cuda_settings& settings) {
        on_cuda::check(cudaSetDevice(settings.device), "device");
        return settings;
    }
    // While the operations of `repeat` are started: nobody reads their sums before its end.
    class repeating {
      public:
        explicit repeating(cuda& of) : of_(of) { of_.repeating_ = true; }
        ~repeating() {
            of_.repeating_ = false;
            of_.deferred_.forget();  // some are left only where an operation threw
        }
        repeating(const repeating&) = delete;
        repeating& operator=(const repeating&) = delete;

      private:
        cuda& of_;
    };
    on_cuda::deferred_sums* later() { return settings_.aside && repeating_ ? &deferred_ : nullptr; }
    on_cuda::block_sums sums() { return {scratch_, later()}; }

    static constexpr std::size_t scratch_bytes(const Dims& d, const Run& r) {
        const long long rows = r.batch * r.seq;
        const auto heads = static_cast<int>(d.heads), head_dim = static_cast<int>(d.head_dim);
        const std::size_t needs[] = {
            on_cuda::linear_backward_scratch(static_cast<int>(std::max({d.width, d.ffn, d.heads * d.head_dim}))),
            on_cuda::rms_norm_backward_scratch(static_cast<int>(d.width)),
            on_cuda::qk_prepare_backward_scratch(heads, head_dim),
            head_dim != 64 && head_dim != 128
                ? 0
                : on_cuda::prepared_attention_backward_scratch<Arch>({.batch = static_cast<int>(r.batch),
                                                                      .heads = heads,
                                                                      .kv_heads = static_cast<int>(d.kv()),
                                                                      .head_dim = head_dim,
                                                                      .queries = {static_cast<int>(r.seq)},
                                                                      .keys = {static_cast<int>(r.seq)}}),
            on_cuda::head_loss_scratch(rows),
            on_cuda::depth_mass_scratch(rows, heads),
            on_cuda::route_logits_backward_scratch(static_cast<int>(d.width)),
            on_cuda::scatter_residual_backward_scratch(rows),
            on_cuda::route_loss_scratch(rows),
            on_cuda::select_scratch(static_cast<int>(r.batch), static_cast<int>(r.seq), true),
            on_cuda::squares_scratch()};
        return *std::max_element(std::begin(needs), std::end(needs));
    }

    cuda_settings settings_;
    cudaStream_t stream_ = nullptr;
    cudaStream_t branch_ = nullptr;  // see record_rooms; nothing runs there
    on_cuda::uploads upload_;
    on_cuda::products multiply_{nullptr}, multiply_aside_{nullptr};
    on_cuda::side_stream beside_;
    on_cuda::deferred_sums deferred_{beside_};
    bool repeating_ = false;
    std::byte* scratch_ = nullptr;
};

}  // namespace sdepth::inline v0
