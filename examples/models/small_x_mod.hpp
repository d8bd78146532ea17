// SPDX-License-Identifier: MIT
// The small byte-level X-MoD model of the examples: two dense layers, four layers that each take a quarter of the
// tokens, and a dense anchor. train.cpp has the same formula; train.cu trains it on a GPU.
#pragma once

#include "sdepth/sdepth.hpp"

namespace examples {

using namespace sdepth;
using namespace sdepth::literals;

inline constexpr auto small_x_mod = dense * 2_c + (sparse<4> * 4_c + dense);
using SmallXMoD =
    Model<small_x_mod, Dims{.width = 128, .head_dim = 64, .heads = 2, .kv_heads = 1, .ffn = 384, .vocab = 256}>;
static_assert(SmallXMoD::layers == 7);
static_assert(counted<params<SmallXMoD>.total, 1'445'124>());

}  // namespace examples
