// SPDX-License-Identifier: MIT
// The host backend: every operation of ops/ in plain C++20, and memory. host<double> is the oracle of every check,
// host<float> what runs without a GPU. Rank 5.
#pragma once

#include <cstddef>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <type_traits>

#include "sdepth/dims.hpp"
#include "sdepth/error.hpp"
#include "sdepth/kernels/host/attention.hpp"
#include "sdepth/kernels/host/attention_blocked.hpp"
#include "sdepth/kernels/host/decode.hpp"
#include "sdepth/kernels/host/depth_attention.hpp"
#include "sdepth/kernels/host/ends.hpp"
#include "sdepth/kernels/host/expert_losses.hpp"
#include "sdepth/kernels/host/experts.hpp"
#include "sdepth/kernels/host/ffn.hpp"
#include "sdepth/kernels/host/gated_delta.hpp"
#include "sdepth/kernels/host/gated_norm.hpp"
#include "sdepth/kernels/host/grouped.hpp"
#include "sdepth/kernels/host/initial.hpp"
#include "sdepth/kernels/host/linear.hpp"
#include "sdepth/kernels/host/linear_attention.hpp"
#include "sdepth/kernels/host/norm.hpp"
#include "sdepth/kernels/host/rotary.hpp"
#include "sdepth/kernels/host/route.hpp"
#include "sdepth/kernels/host/s4.hpp"
#include "sdepth/kernels/host/selective_scan.hpp"
#include "sdepth/kernels/host/short_conv.hpp"
#include "sdepth/kernels/host/ssd.hpp"
#include "sdepth/kernels/host/update.hpp"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0 {

/// Owned memory of the host backend, aligned to 256 bytes.
class host_memory {
  public:
    static constexpr std::align_val_t alignment{256};

    /// Contents are indeterminate. Throws sdepth::error where the machine has too little.
    explicit host_memory(std::size_t bytes) : bytes_(bytes) {
        void* data = ::operator new(bytes, alignment, std::nothrow);
        if (data == nullptr)
            throw error("host memory: " + std::to_string(bytes) +
                        " bytes are not to be had; make batch or model smaller");
        data_.reset(static_cast<std::byte*>(data));
    }
    std::byte* data() const { return data_.get(); }
    std::size_t bytes() const { return bytes_; }

  private:
    struct release {
        void operator()(std::byte* data) const { ::operator delete(data, alignment); }
    };
    std::unique_ptr<std::byte, release> data_;
    std::size_t bytes_;
};

/// The backend. Results do not depend on the number of threads. One operation at a time: an object is not shared by
/// threads of the caller.
template <class T>
class host {
  public:
    using precision = uniform_precision<T>;
    using memory = host_memory;
    /// A named stretch of operations, for profilers of backends that have one.
    struct range {
        explicit range(const std::string&) {}
    };
    /// A repeated part of a program; nothing is kept of it here.
    template <class Key>
    struct recording {};

    static constexpr long long logit_rows = 1024;  ///< that exist at a time
    static constexpr int route_parts = 1;          ///< sums of route_version_backward
    static constexpr int muon_together = 1;        ///< matrices that muon works on at the same time

    /// `threads` = 0: one per core. Throws sdepth::error where the machine's OpenBLAS fails its check.
    explicit host(int threads = 0) : team_(threads) {
        if constexpr (std::is_same_v<T, float>) on_host::prepare_products();
    }
    int threads() const { return team_.threads(); }

    /// Operations take what they need beside their arguments from the heap.
    static constexpr long long workspace_bytes(const Dims&, const Run&) { return 0; }
    void use_workspace(void*) {}
    /// Nothing runs beside what follows.
    void join() {}
    /// Runs a body that does the same whenever its key is the same.
    template <class Key, class F>
    void repeat(recording<Key>&, const Key&, F body) {
        body();
    }

    /// Calls body(rows) with one of `rooms`, rising, in which live[b] rows of each sequence find room: here always the
    /// last, for loops run over live rows anyway.
    template <class F>
    void fitting(const int*, int, const int* rooms, int steps, F body) {
        body(rooms[steps - 1]);
    }

    memory allocate(std::size_t bytes) { return memory(bytes); }
    void zero(void* to, std::size_t bytes) { std::memset(to, 0, bytes); }
    /// The same in `rows` rows that lie `stride` bytes apart.
    void zero_rows(void* to, std::size_t bytes, std::size_t stride, std::size_t rows) {
        for (std::size_t i = 0; i < rows; ++i) std::memset(static_cast<std::byte*>(to) + i * stride, 0, bytes);
    }
    void copy(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
    void to_device(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }
    void from_device(void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); }

    void linear(const LinearArgs<precision>& a) { on_host::linear<T>(team_, a); }
    void linear_backward(const LinearBackwardArgs<precision>& a) { on_host::linear_backward<T>(team_, a); }

    void rms_norm(const RmsNormArgs<precision>& a) { on_host::rms_norm<T>(team_, a); }
    void rms_norm_backward(const RmsNormBackwardArgs<precision>& a) { on_host::rms_norm_backward<T>(team_, a); }
    void gather(const GatherArgs<precision>& a) { on_host::gather<T>(team_, a); }
    void gather_rms_norm(const GatherArgs<precision>& g, const RmsNormArgs<precision>& a) {
        gather(g);
        rms_norm(a);
    }
    void add_rms_norm(const AddArgs<precision>& sum, const RmsNormArgs<precision>& a) {
        add(sum);
        rms_norm(a);
    }
    void scatter(const ScatterArgs<precision>& a) { on_host::scatter<T>(team_, a); }
    void add(const AddArgs<precision>& a) { on_host::add<T>(team_, a); }

    void qk_prepare(const QkPrepareArgs<precision>& a) { on_host::qk_prepare<T>(team_, a); }
    void qk_prepare_backward(const QkPrepareBackwardArgs<precision>& a) { on_host::qk_prepare_backward<T>(team_, a); }
    void attention(const AttentionArgs<T>& a) {
        if constexpr (is_oracle)
            on_host::attention_forward(a);
        else
            on_host::blocked_attention(team_, a);
    }
    void attention_backward(const AttentionBackwardArgs<T>& a) {
        if constexpr (is_oracle)
            on_host::attention_backward(a);
        else
            on_host::blocked_attention_backward(team_, a);
    }

    void depth_attention(const DepthAttentionArgs<T>& a) { on_host::depth_attention_forward(team_, a); }
    void depth_attention_backward(const DepthAttentionBackwardArgs<T>& a) {
        on_host::depth_attention_backward(team_, a);
    }
    void write_slot(const WriteSlotArgs<precision>& a) { on_host::write_slot<T>(team_, a); }
    void slot_gradient(const SlotGradientArgs<precision>& a) { on_host::slot_gradient<T>(team_, a); }
    void depth_mass(const DepthMassArgs<precision>& a) { on_host::depth_mass<T>(team_, a); }

    void short_conv(const ShortConvArgs<precision>& a) { on_host::short_conv<T>(team_, a); }
    void short_conv_backward(const ShortConvBackwardArgs<precision>& a) { on_host::short_conv_backward<T>(team_, a); }
    void gated_norm(const GatedNormArgs<precision>& a) { on_host::gated_norm<T>(team_, a); }
    void gated_norm_backward(const GatedNormBackwardArgs<precision>& a) { on_host::gated_norm_backward<T>(team_, a); }
    void ssd(const SsdArgs<precision>& a) { on_host::ssd<T>(team_, a); }
    void ssd_step(const SsdArgs<precision>& a) { on_host::ssd_step<T>(team_, a); }
    void ssd_backward(const SsdBackwardArgs<precision>& a) { on_host::ssd_backward<T>(team_, a); }
    void selective_scan(const SelectiveScanArgs<precision>& a) { on_host::selective_scan<T>(team_, a); }
    void selective_scan_step(const SelectiveScanArgs<precision>& a) { on_host::selective_scan_step<T>(team_, a); }
    void selective_scan_backward(const SelectiveScanBackwardArgs<precision>& a) {
        on_host::selective_scan_backward<T>(team_, a);
    }
    void s4(const S4Args<precision>& a) { on_host::s4<T>(team_, a); }
    void s4_step(const S4Args<precision>& a) { on_host::s4_step<T>(team_, a); }
    void s4_backward(const S4BackwardArgs<precision>& a) { on_host::s4_backward<T>(team_, a); }
    void gated_delta(const GatedDeltaArgs<precision>& a) { on_host::gated_delta<T>(team_, a); }
    void gated_delta_step(const GatedDeltaArgs<precision>& a) { on_host::gated_delta_step<T>(team_, a); }
    void gated_delta_backward(const GatedDeltaBackwardArgs<precision>& a) {
        on_host::gated_delta_backward<T>(team_, a);
    }
    void linear_attention(const LinearAttentionArgs<precision>& a) { on_host::linear_attention<T>(team_, a); }
    void linear_attention_step(const LinearAttentionArgs<precision>& a) { on_host::linear_attention_step<T>(team_, a); }
    void linear_attention_backward(const LinearAttentionBackwardArgs<precision>& a) {
        on_host::linear_attention_backward<T>(team_, a);
    }

    void swiglu(const SwigluArgs<precision>& a) { on_host::swiglu<T>(team_, a); }
    void swiglu_backward(const SwigluBackwardArgs<precision>& a) { on_host::swiglu_backward<T>(team_, a); }
    void activation(const ActivationArgs<precision>& a) { on_host::activation<T>(team_, a); }
    void activation_backward(const ActivationBackwardArgs<precision>& a) { on_host::activation_backward<T>(team_, a); }

    void expert_logits(const ExpertLogitsArgs<precision>& a) { on_host::expert_logits<T>(team_, a); }
    void expert_logits_backward(const ExpertLogitsBackwardArgs<precision>& a) {
        on_host::expert_logits_backward<T>(team_, a);
    }
    void expert_noise(const ExpertNoiseArgs<precision>& a) { on_host::expert_noise<T>(team_, a); }
    void expert_noise_backward(const ExpertNoiseBackwardArgs<precision>& a) {
        on_host::expert_noise_backward<T>(team_, a);
    }
    void choose_experts(const ChooseExpertsArgs<precision>& a) { on_host::choose_experts<T>(team_, a); }
    void expert_weights(const ExpertWeightsArgs<precision>& a) { on_host::expert_weights<T>(team_, a); }
    void expert_weights_backward(const ExpertWeightsBackwardArgs<precision>& a) {
        on_host::expert_weights_backward<T>(team_, a);
    }
    void group_experts(const GroupExpertsArgs<precision>& a) { on_host::group_experts<T>(a); }
    void gather_slots(const GatherSlotsArgs<precision>& a) { on_host::gather_slots<T>(team_, a); }
    void combine_slots(const CombineSlotsArgs<precision>& a) { on_host::combine_slots<T>(team_, a); }
    void grouped_linear(const GroupedLinearArgs<precision>& a) { on_host::grouped_linear<T>(team_, a); }
    void grouped_linear_backward(const GroupedLinearBackwardArgs<precision>& a) {
        on_host::grouped_linear_backward<T>(team_, a);
    }
    void weighted_swiglu(const WeightedSwigluArgs<precision>& a) { on_host::weighted_swiglu<T>(team_, a); }
    void weighted_swiglu_backward(const WeightedSwigluBackwardArgs<precision>& a) {
        on_host::weighted_swiglu_backward<T>(team_, a);
    }
    void expert_losses(const ExpertLossArgs<precision>& a) { on_host::expert_losses<T>(team_, a); }
    void steer_experts(const SteerExpertsArgs<precision>& a) { on_host::steer_experts<T>(a); }

    void embed(const EmbedArgs<precision>& a) { on_host::embed<T>(team_, a); }
    void embed_backward(const EmbedBackwardArgs<precision>& a) { on_host::embed_backward<T>(team_, a); }
    void head_loss(const HeadLossArgs<precision>& a) { on_host::head_loss<T>(team_, a); }

    void route_logits(const RouteLogitsArgs<precision>& a) { on_host::route_logits<T>(team_, a); }
    void route_logits_backward(const RouteLogitsBackwardArgs<precision>& a) {
        on_host::route_logits_backward<T>(team_, a);
    }
    void route_version_logits(const RouteVersionLogitsArgs<precision>& a) {
        on_host::route_version_logits<T>(team_, a);
    }
    void route_version_backward(const RouteVersionBackwardArgs<precision>& a) {
        on_host::route_version_backward<T>(team_, a);
    }
    void select(const SelectArgs<precision>& a) { on_host::select<T>(team_, a); }
    void visibility(const VisibilityArgs& a) { on_host::visibility(team_, a); }
    void scatter_residual(const ScatterResidualArgs<precision>& a) { on_host::scatter_residual<T>(team_, a); }
    void scatter_residual_backward(const ScatterResidualBackwardArgs<precision>& a) {
        on_host::scatter_residual_backward<T>(team_, a);
    }
    void route_loss(const RouteLossArgs<precision>& a) { on_host::route_loss<T>(team_, a); }
    void positions(const PositionsArgs& a) { on_host::positions(team_, a); }
    void cache(const CacheArgs<precision>& a) { on_host::cache<T>(a); }
    void track_cut(const TrackCutArgs<precision>& a) { on_host::track_cut<T>(a); }

    void initialise(const InitialArgs<precision>& a) { on_host::initialise<T>(team_, a); }
    void squares(const SquaresArgs<precision>& a) { on_host::squares<T>(team_, a); }
    void begin_update(const BeginUpdateArgs& a) { on_host::begin_update(a); }
    void adamw(const AdamwArgs<precision>& a) { on_host::adamw<T>(team_, a); }
    void muon(const MuonArgs<precision>& a) { on_host::muon<T>(team_, a); }

  private:
    static constexpr bool is_oracle = std::is_same_v<T, double>;  // plain forms where there are two

    on_host::workers team_;
};

}  // namespace sdepth::inline v0
