// SPDX-License-Identifier: MIT
// The operations of the CUDA backend, compiled once for all programs of this build: tests/support/CMakeLists.txt makes
// their definitions of this list and includes it before every unit. An operation that is missing here is compiled again
// in each unit that calls it.
#pragma once

#include "sdepth/cuda.cuh"

namespace sdepth::inline v0::on_cuda {

using stored = cuda_precision;

extern template void linear(const LinearArgs<stored>&, products&, cudaStream_t);
extern template void linear_backward_clear(const LinearBackwardArgs<stored>&, cudaStream_t);
extern template void linear_backward_rows(const LinearBackwardArgs<stored>&, products&, block_sums, cudaStream_t);
extern template void linear_backward_weight(const LinearBackwardArgs<stored>&, products&, cudaStream_t);
extern template void rms_norm(const RmsNormArgs<stored>&, cudaStream_t);
extern template void rms_norm_backward(const RmsNormBackwardArgs<stored>&, block_sums, cudaStream_t);
extern template void gather_rms_norm(const GatherArgs<stored>&, const RmsNormArgs<stored>&, cudaStream_t);
extern template void add_rms_norm(const AddArgs<stored>&, const RmsNormArgs<stored>&, cudaStream_t);
extern template void gather(const GatherArgs<stored>&, cudaStream_t);
extern template void scatter(const ScatterArgs<stored>&, cudaStream_t);
extern template void add(const AddArgs<stored>&, cudaStream_t);
extern template void qk_prepare(const QkPrepareArgs<stored>&, cudaStream_t);
extern template void qk_prepare_backward(const QkPrepareBackwardArgs<stored>&, block_sums, cudaStream_t);
extern template void attention_forward<hopper>(const AttentionArgs<__nv_bfloat16>&, cudaStream_t);
extern template void attention_backward<hopper>(const AttentionBackwardArgs<__nv_bfloat16>&, void*, cudaStream_t);
extern template void prepared_attention_backward<hopper>(const AttentionBackwardArgs<__nv_bfloat16>&,
                                                         const QkPrepareBackwardArgs<stored>&, void*, cudaStream_t,
                                                         deferred_sums*);
extern template void attention_to_nothing(const AttentionArgs<__nv_bfloat16>&, cudaStream_t);
extern template void depth_attention_forward<hopper>(const DepthAttentionArgs<__nv_bfloat16>&, cudaStream_t);
extern template void depth_attention_backward<hopper>(const DepthAttentionBackwardArgs<__nv_bfloat16>&, cudaStream_t);
extern template void write_slot(const WriteSlotArgs<stored>&, cudaStream_t);
extern template void slot_gradient(const SlotGradientArgs<stored>&, cudaStream_t);
extern template void depth_mass(const DepthMassArgs<stored>&, void*, cudaStream_t);
extern template void swiglu(const SwigluArgs<stored>&, cudaStream_t);
extern template void swiglu_backward(const SwigluBackwardArgs<stored>&, cudaStream_t);
extern template void activation(const ActivationArgs<stored>&, cudaStream_t);
extern template void activation_backward(const ActivationBackwardArgs<stored>&, cudaStream_t);
extern template void embed(const EmbedArgs<stored>&, cudaStream_t);
extern template void embed_backward(const EmbedBackwardArgs<stored>&, cudaStream_t);
extern template void head_loss(const HeadLossArgs<stored>&, products&, void*, cudaStream_t);
extern template void route_logits(const RouteLogitsArgs<stored>&, cudaStream_t);
extern template void route_logits_backward(const RouteLogitsBackwardArgs<stored>&, block_sums, cudaStream_t);
extern template void route_version_logits(const RouteVersionLogitsArgs<stored>&, cudaStream_t);
extern template void route_version_backward(const RouteVersionBackwardArgs<stored>&, cudaStream_t);
extern template void select<hopper>(const SelectArgs<stored>&, void*, cudaStream_t);
extern template void scatter_residual(const ScatterResidualArgs<stored>&, cudaStream_t);
extern template void scatter_residual_backward(const ScatterResidualBackwardArgs<stored>&, block_sums, cudaStream_t);
extern template void route_loss(const RouteLossArgs<stored>&, block_sums, cudaStream_t);
extern template void cache(const CacheArgs<stored>&, cudaStream_t);
extern template void track_cut(const TrackCutArgs<stored>&, cudaStream_t);
extern template void initialise(const InitialArgs<stored>&, cudaStream_t);
extern template void squares(const SquaresArgs<stored>&, void*, cudaStream_t);
extern template void adamw(const AdamwArgs<stored>&, cudaStream_t);
extern template void muon(const MuonArgs<stored>&, products&, cudaStream_t);

}  // namespace sdepth::inline v0::on_cuda
