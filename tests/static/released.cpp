// SPDX-License-Identifier: MIT
// Released models and classic positions: counts against what their files hold or their papers print.
#include "printed.hpp"

namespace {

using namespace sdepth;
using namespace sdepth::presets;
using namespace sdepth_test;

// Numbers in the published files.
static_assert(counted<total<Model<dense_28, size_qwen3_600m>>, 596'049'920>());  // Qwen3-0.6B
static_assert(counted<total<Model<mixtral, size_mixtral>>, 46'702'792'704>());   // Mixtral 8x7B: 46.7B, 12.9B active
static_assert(rounded(params<Model<mixtral, size_mixtral>>.active / ratio(1'000'000'000), 10) == 129);
static_assert(counted<total<Model<mamba_24, size_mamba_130m>>, 129'135'360>());    // Mamba-130m
static_assert(counted<total<Model<mamba2_24, size_mamba2_130m>>, 128'989'632>());  // Mamba-2-130m

// Jamba v0.1: 52B, 12B active (51.57B in the file). The file holds 288 more norm gains in each of 28 Mamba layers.
using Jamba = Model<jamba, size_jamba>;
static_assert(Jamba::layers == 32 && Jamba::ffn_layers == 32);
static_assert(counted<params<Jamba>.total, 51'570'315'264>());
static_assert(params<Jamba>.total + 28 * (256 + 16 + 16) == 51'570'323'328);
static_assert(rounded(params<Jamba>.active / ratio(1'000'000'000), 1) == 12);
static_assert(params<Jamba>.of(role::query) == 4 * 4096 * 4096, "one attention layer in eight");
static_assert(params<Jamba>.of(role::expert_router) == 16 * 16 * 4096, "experts in every other layer");

// Qwen3-Next: 80B, 3B active, without its prediction module. The release has a gate of 4,096 outputs on each of 12
// attention layers and one row on each of 48 shared experts more.
using Next = Model<qwen3_next, size_qwen3_next>;
static_assert(Next::layers == 48);
static_assert(counted<params<Next>.total, 79'573'629'696>());
static_assert(params<Next>.total + 12 * 2048 * 4096 + 48 * 2048 == 79'674'391'296);  // 80B
static_assert(rounded(params<Next>.active / ratio(1'000'000'000), 10) == 38);
static_assert(rounded((params<Next>.active + ratio(12 * 2048 * 4096)) / ratio(1'000'000'000), 10) == 39);
// "3B" leaves the embeddings out.
static_assert(params<Next>.active.num() / params<Next>.active.den() - 2LL * 151'936 * 2048 == 3'151'837'952);

// Switch-Base with 128 experts is 7.4B as an encoder with a decoder, 12 layers each; this is one stack of 12.
using Switch = Model<switch_base, size_switch_base>;
static_assert(Switch::layers == 12);
static_assert(counted<params<Switch>.total, 3'705'785'088>());
// One expert of two 768 x 3072 matrices has as many weights as a SwiGLU of width 2048.
static_assert(params<Switch>.of(role::gate) * 3 == 6LL * 128 * 2 * 768 * 3072);

// GLaM 0.1B/64E: printed 1.9B in all, which leaves the embedding of 256,000 rows out.
using Glam = Model<glam, size_glam_100m>;
static_assert(counted<params<Glam>.total, 2'079'640'320>());
static_assert(rounded(ratio(params<Glam>.total - 256'000 * 768, 1'000'000'000), 10) == 19);

}  // namespace
