// SPDX-License-Identifier: MIT
// The oracle's operations, compiled once and optimised for all the laws: tests/laws/CMakeLists.txt makes their
// definitions of this list. An operation that is missing here is compiled again in each file that calls it.
#pragma once

#include "sdepth/kernels/host/host.hpp"

namespace sdepth::inline v0::on_host {

using exact = uniform_precision<double>;

extern template void linear<double>(workers&, const LinearArgs<exact>&);
extern template void linear_backward<double>(workers&, const LinearBackwardArgs<exact>&);
extern template void rms_norm<double>(workers&, const RmsNormArgs<exact>&);
extern template void rms_norm_backward<double>(workers&, const RmsNormBackwardArgs<exact>&);
extern template void gather<double>(workers&, const GatherArgs<exact>&);
extern template void scatter<double>(workers&, const ScatterArgs<exact>&);
extern template void add<double>(workers&, const AddArgs<exact>&);
extern template void qk_prepare<double>(workers&, const QkPrepareArgs<exact>&);
extern template void qk_prepare_backward<double>(workers&, const QkPrepareBackwardArgs<exact>&);
extern template void attention_forward<double>(const AttentionArgs<double>&);
extern template void attention_backward<double>(const AttentionBackwardArgs<double>&);
extern template void depth_attention_forward<double>(workers&, const DepthAttentionArgs<double>&);
extern template void depth_attention_backward<double>(workers&, const DepthAttentionBackwardArgs<double>&);
extern template void write_slot<double>(workers&, const WriteSlotArgs<exact>&);
extern template void slot_gradient<double>(workers&, const SlotGradientArgs<exact>&);
extern template void depth_mass<double>(workers&, const DepthMassArgs<exact>&);
extern template void short_conv<double>(workers&, const ShortConvArgs<exact>&);
extern template void short_conv_backward<double>(workers&, const ShortConvBackwardArgs<exact>&);
extern template void gated_norm<double>(workers&, const GatedNormArgs<exact>&);
extern template void gated_norm_backward<double>(workers&, const GatedNormBackwardArgs<exact>&);
extern template void ssd<double>(workers&, const SsdArgs<exact>&);
extern template void ssd_step<double>(workers&, const SsdArgs<exact>&);
extern template void ssd_backward<double>(workers&, const SsdBackwardArgs<exact>&);
extern template void selective_scan<double>(workers&, const SelectiveScanArgs<exact>&);
extern template void selective_scan_step<double>(workers&, const SelectiveScanArgs<exact>&);
extern template void selective_scan_backward<double>(workers&, const SelectiveScanBackwardArgs<exact>&);
extern template void s4<double>(workers&, const S4Args<exact>&);
extern template void s4_step<double>(workers&, const S4Args<exact>&);
extern template void s4_backward<double>(workers&, const S4BackwardArgs<exact>&);
extern template void gated_delta<double>(workers&, const GatedDeltaArgs<exact>&);
extern template void gated_delta_step<double>(workers&, const GatedDeltaArgs<exact>&);
extern template void gated_delta_backward<double>(workers&, const GatedDeltaBackwardArgs<exact>&);
extern template void linear_attention<double>(workers&, const LinearAttentionArgs<exact>&);
extern template void linear_attention_step<double>(workers&, const LinearAttentionArgs<exact>&);
extern template void linear_attention_backward<double>(workers&, const LinearAttentionBackwardArgs<exact>&);
extern template void swiglu<double>(workers&, const SwigluArgs<exact>&);
extern template void swiglu_backward<double>(workers&, const SwigluBackwardArgs<exact>&);
extern template void activation<double>(workers&, const ActivationArgs<exact>&);
extern template void activation_backward<double>(workers&, const ActivationBackwardArgs<exact>&);
extern template void expert_logits<double>(workers&, const ExpertLogitsArgs<exact>&);
extern template void expert_logits_backward<double>(workers&, const ExpertLogitsBackwardArgs<exact>&);
extern template void expert_noise<double>(workers&, const ExpertNoiseArgs<exact>&);
extern template void expert_noise_backward<double>(workers&, const ExpertNoiseBackwardArgs<exact>&);
extern template void choose_experts<double>(workers&, const ChooseExpertsArgs<exact>&);
extern template void expert_weights<double>(workers&, const ExpertWeightsArgs<exact>&);
extern template void expert_weights_backward<double>(workers&, const ExpertWeightsBackwardArgs<exact>&);
extern template void group_experts<double>(const GroupExpertsArgs<exact>&);
extern template void gather_slots<double>(workers&, const GatherSlotsArgs<exact>&);
extern template void combine_slots<double>(workers&, const CombineSlotsArgs<exact>&);
extern template void grouped_linear<double>(workers&, const GroupedLinearArgs<exact>&);
extern template void grouped_linear_backward<double>(workers&, const GroupedLinearBackwardArgs<exact>&);
extern template void weighted_swiglu<double>(workers&, const WeightedSwigluArgs<exact>&);
extern template void weighted_swiglu_backward<double>(workers&, const WeightedSwigluBackwardArgs<exact>&);
extern template void expert_losses<double>(workers&, const ExpertLossArgs<exact>&);
extern template void steer_experts<double>(const SteerExpertsArgs<exact>&);
extern template void embed<double>(workers&, const EmbedArgs<exact>&);
extern template void embed_backward<double>(workers&, const EmbedBackwardArgs<exact>&);
extern template void head_loss<double>(workers&, const HeadLossArgs<exact>&);
extern template void route_logits<double>(workers&, const RouteLogitsArgs<exact>&);
extern template void route_logits_backward<double>(workers&, const RouteLogitsBackwardArgs<exact>&);
extern template void route_version_backward<double>(workers&, const RouteVersionBackwardArgs<exact>&);
extern template void select<double>(workers&, const SelectArgs<exact>&);
extern template void scatter_residual<double>(workers&, const ScatterResidualArgs<exact>&);
extern template void scatter_residual_backward<double>(workers&, const ScatterResidualBackwardArgs<exact>&);
extern template void route_loss<double>(workers&, const RouteLossArgs<exact>&);
extern template void cache<double>(const CacheArgs<exact>&);
extern template void track_cut<double>(const TrackCutArgs<exact>&);
extern template void initialise<double>(workers&, const InitialArgs<exact>&);
extern template void squares<double>(workers&, const SquaresArgs<exact>&);
extern template void adamw<double>(workers&, const AdamwArgs<exact>&);
extern template void muon<double>(workers&, const MuonArgs<exact>&);

}  // namespace sdepth::inline v0::on_host
