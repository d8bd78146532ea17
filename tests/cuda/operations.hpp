// SPDX-License-Identifier: MIT
// Operations on the GPU over arrays of doubles in host memory: the same arguments as the oracle takes. Numbers are
// rounded to the storage types on the way there, scratch is full of NaN. No CUDA, no Catch2 here.
#pragma once

#include "sdepth/ops/decode.hpp"
#include "sdepth/ops/depth_attention.hpp"
#include "sdepth/ops/ends.hpp"
#include "sdepth/ops/ffn.hpp"
#include "sdepth/ops/linear.hpp"
#include "sdepth/ops/norm.hpp"
#include "sdepth/ops/rotary.hpp"
#include "sdepth/ops/route.hpp"
#include "sdepth/ops/update.hpp"
#include "sdepth/precision.hpp"

namespace sdepth_test::on_device {

using exact = sdepth::uniform_precision<double>;

/// `workspace`: whether products have one.
void linear(const sdepth::LinearArgs<exact>& a, bool workspace);
void linear_backward(const sdepth::LinearBackwardArgs<exact>& g, bool workspace);

void rms_norm(const sdepth::RmsNormArgs<exact>& a);
void rms_norm_backward(const sdepth::RmsNormBackwardArgs<exact>& g);
/// In one kernel.
void gather_rms_norm(const sdepth::GatherArgs<exact>& g, const sdepth::RmsNormArgs<exact>& a);
void add_rms_norm(const sdepth::AddArgs<exact>& s, const sdepth::RmsNormArgs<exact>& a);
void gather(const sdepth::GatherArgs<exact>& a);
void scatter(const sdepth::ScatterArgs<exact>& a);
void add(const sdepth::AddArgs<exact>& a);

void qk_prepare(const sdepth::QkPrepareArgs<exact>& a);
void qk_prepare_backward(const sdepth::QkPrepareBackwardArgs<exact>& g);

void swiglu(const sdepth::SwigluArgs<exact>& a);
void swiglu_backward(const sdepth::SwigluBackwardArgs<exact>& g);
void activation(const sdepth::ActivationArgs<exact>& a);
void activation_backward(const sdepth::ActivationBackwardArgs<exact>& g);

void embed(const sdepth::EmbedArgs<exact>& a);
void embed_backward(const sdepth::EmbedBackwardArgs<exact>& g);
/// `logits` is not used: the device has its own.
void head_loss(const sdepth::HeadLossArgs<exact>& a);

void route_logits(const sdepth::RouteLogitsArgs<exact>& a);
void route_logits_backward(const sdepth::RouteLogitsBackwardArgs<exact>& g);
/// `layers` times `logits_stride` logits.
void route_version_logits(const sdepth::RouteVersionLogitsArgs<exact>& a);
/// `sums` has `route_parts` parts.
void route_version_backward(const sdepth::RouteVersionBackwardArgs<exact>& a);
inline constexpr int route_parts = 8;
/// `portable`: by one block a sequence.
void select(const sdepth::SelectArgs<exact>& a, bool portable);
void visibility(const sdepth::VisibilityArgs& a);
void scatter_residual(const sdepth::ScatterResidualArgs<exact>& a);
void scatter_residual_backward(const sdepth::ScatterResidualBackwardArgs<exact>& g);
void route_loss(const sdepth::RouteLossArgs<exact>& a);
void track_cut(const sdepth::TrackCutArgs<exact>& a);
void positions(const sdepth::PositionsArgs& a);
void cache(const sdepth::CacheArgs<exact>& a);

void write_slot(const sdepth::WriteSlotArgs<exact>& a);
void slot_gradient(const sdepth::SlotGradientArgs<exact>& g);
void depth_mass(const sdepth::DepthMassArgs<exact>& m);

void squares(const sdepth::SquaresArgs<exact>& a);
void begin_update(const sdepth::BeginUpdateArgs& a);
void adamw(const sdepth::AdamwArgs<exact>& a);
/// `scratch` is not used: the device has its own.
void muon(const sdepth::MuonArgs<exact>& a);
/// The bfloat16 copies that the last adamw or muon wrote, as often as there are masters.
const double* last_copies();

}  // namespace sdepth_test::on_device
