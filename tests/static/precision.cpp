// SPDX-License-Identifier: MIT
// Passes keep the number types of a backend apart: they compile for one in which no two types agree and nothing
// converts.
#include "sdepth/decoder.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "sdepth/pipeline.hpp"
#include "sdepth/sdepth.hpp"

namespace {

using namespace sdepth;
using namespace sdepth::literals;

// weight, master, gradient, activation, sum
using P = precision<short, double, long double, signed char, float>;

// Operations take their arguments and do nothing.
struct typed_backend {
    using precision = P;
    using memory = host_memory;

    memory allocate(std::size_t bytes) { return memory(bytes); }
    struct range {
        explicit range(const std::string&) {}
    };
    template <class Key>
    struct recording {};
    template <class Key, class F>
    void repeat(recording<Key>&, const Key&, F body) {
        body();
    }
    template <class F>
    void fitting(const int*, int, const int* rooms, int steps, F body) {
        body(rooms[steps - 1]);
    }
    static constexpr long long logit_rows = 4;
    static constexpr int muon_together = 2;
    static constexpr long long workspace_bytes(const Dims&, const Run&) { return 0; }
    void use_workspace(void*) {}
    void join() {}
    void zero(void*, std::size_t) {}
    void zero_rows(void*, std::size_t, std::size_t, std::size_t) {}
    void copy(void*, const void*, std::size_t) {}
    void to_device(void*, const void*, std::size_t) {}
    void from_device(void*, const void*, std::size_t) {}

    void linear(const LinearArgs<P>&) {}
    void linear_backward(const LinearBackwardArgs<P>&) {}
    void rms_norm(const RmsNormArgs<P>&) {}
    void rms_norm_backward(const RmsNormBackwardArgs<P>&) {}
    void gather(const GatherArgs<P>&) {}
    void gather_rms_norm(const GatherArgs<P>&, const RmsNormArgs<P>&) {}
    void add_rms_norm(const AddArgs<P>&, const RmsNormArgs<P>&) {}
    void scatter(const ScatterArgs<P>&) {}
    void add(const AddArgs<P>&) {}
    void qk_prepare(const QkPrepareArgs<P>&) {}
    void qk_prepare_backward(const QkPrepareBackwardArgs<P>&) {}
    void attention(const AttentionArgs<P::activation>&) {}
    void attention_backward(const AttentionBackwardArgs<P::activation>&) {}
    void depth_attention(const DepthAttentionArgs<P::activation>&) {}
    void depth_attention_backward(const DepthAttentionBackwardArgs<P::activation>&) {}
    void write_slot(const WriteSlotArgs<P>&) {}
    void slot_gradient(const SlotGradientArgs<P>&) {}
    void depth_mass(const DepthMassArgs<P>&) {}
    void short_conv(const ShortConvArgs<P>&) {}
    void short_conv_backward(const ShortConvBackwardArgs<P>&) {}
    void gated_norm(const GatedNormArgs<P>&) {}
    void gated_norm_backward(const GatedNormBackwardArgs<P>&) {}
    void ssd(const SsdArgs<P>&) {}
    void ssd_step(const SsdArgs<P>&) {}
    void ssd_backward(const SsdBackwardArgs<P>&) {}
    void selective_scan(const SelectiveScanArgs<P>&) {}
    void selective_scan_step(const SelectiveScanArgs<P>&) {}
    void selective_scan_backward(const SelectiveScanBackwardArgs<P>&) {}
    void s4(const S4Args<P>&) {}
    void s4_step(const S4Args<P>&) {}
    void s4_backward(const S4BackwardArgs<P>&) {}
    void gated_delta(const GatedDeltaArgs<P>&) {}
    void gated_delta_step(const GatedDeltaArgs<P>&) {}
    void gated_delta_backward(const GatedDeltaBackwardArgs<P>&) {}
    void linear_attention(const LinearAttentionArgs<P>&) {}
    void linear_attention_step(const LinearAttentionArgs<P>&) {}
    void linear_attention_backward(const LinearAttentionBackwardArgs<P>&) {}
    void swiglu(const SwigluArgs<P>&) {}
    void swiglu_backward(const SwigluBackwardArgs<P>&) {}
    void activation(const ActivationArgs<P>&) {}
    void activation_backward(const ActivationBackwardArgs<P>&) {}
    void expert_logits(const ExpertLogitsArgs<P>&) {}
    void expert_logits_backward(const ExpertLogitsBackwardArgs<P>&) {}
    void expert_noise(const ExpertNoiseArgs<P>&) {}
    void expert_noise_backward(const ExpertNoiseBackwardArgs<P>&) {}
    void choose_experts(const ChooseExpertsArgs<P>&) {}
    void expert_weights(const ExpertWeightsArgs<P>&) {}
    void expert_weights_backward(const ExpertWeightsBackwardArgs<P>&) {}
    void group_experts(const GroupExpertsArgs<P>&) {}
    void gather_slots(const GatherSlotsArgs<P>&) {}
    void combine_slots(const CombineSlotsArgs<P>&) {}
    void grouped_linear(const GroupedLinearArgs<P>&) {}
    void grouped_linear_backward(const GroupedLinearBackwardArgs<P>&) {}
    void weighted_swiglu(const WeightedSwigluArgs<P>&) {}
    void weighted_swiglu_backward(const WeightedSwigluBackwardArgs<P>&) {}
    void expert_losses(const ExpertLossArgs<P>&) {}
    void steer_experts(const SteerExpertsArgs<P>&) {}
    void embed(const EmbedArgs<P>&) {}
    void embed_backward(const EmbedBackwardArgs<P>&) {}
    void head_loss(const HeadLossArgs<P>&) {}
    void route_logits(const RouteLogitsArgs<P>&) {}
    void route_logits_backward(const RouteLogitsBackwardArgs<P>&) {}
    void select(const SelectArgs<P>&) {}
    void visibility(const VisibilityArgs&) {}
    void scatter_residual(const ScatterResidualArgs<P>&) {}
    void scatter_residual_backward(const ScatterResidualBackwardArgs<P>&) {}
    void route_loss(const RouteLossArgs<P>&) {}
    void positions(const PositionsArgs&) {}
    void cache(const CacheArgs<P>&) {}
    void track_cut(const TrackCutArgs<P>&) {}
    void squares(const SquaresArgs<P>&) {}
    static constexpr int route_parts = 2;
    void route_version_logits(const RouteVersionLogitsArgs<P>&) {}
    void route_version_backward(const RouteVersionBackwardArgs<P>&) {}
    void initialise(const InitialArgs<P>&) {}
    void begin_update(const BeginUpdateArgs&) {}
    void adamw(const AdamwArgs<P>&) {}
    void muon(const MuonArgs<P>&) {}
};

constexpr Dims sizes{.width = 8, .head_dim = 4, .heads = 2, .kv_heads = 1, .ffn = 6, .expert_ffn = 6, .vocab = 11};
constexpr auto biased =
    layer<Attention<attention_policy{.biases = true}>, MLP<activation::gelu, ffn_policy{.biases = true}>>;
constexpr auto slots = layer<DepthAttention<moda_policy{.attention = attention_slot::projected, .joint = false},
                                            attention_policy{.biases = true}>,
                             SwiGLU<>>;
constexpr auto formula = moda + slots + dense + sparse<2> * 2_c + biased +
                         sparse<2, sparse_policy{.keys = key_scope::full, .detach = true}> + moe<4, 2> + mamba +
                         layer<Mamba2<mamba2_policy{.head_dim = 8}>, None> + s4 + linear_attention + gated_delta;
using M = Model<formula, sizes>;
constexpr Run run{.seq = 8, .batch = 2, .replay = recompute::selective};

}  // namespace

template class sdepth::pipeline<M, typed_backend, run>;
template class sdepth::decoder<M, typed_backend, run>;
