// SPDX-License-Identifier: MIT
// The model of the examples, a small X-MoD that reads bytes: train and train_cuda train it, generate and use_model load
// it. The formula is the model: change it and compile.
#pragma once

#include "sdepth/sdepth.hpp"

namespace examples {

using namespace sdepth;
using namespace sdepth::literals;

// Two dense layers, four layers that each take a quarter of the tokens, a dense anchor: four layers a token.
inline constexpr auto small_x_mod = dense * 2_c + (sparse<4> * 4_c + dense);
using SmallXMoD =
    Model<small_x_mod, Dims{.width = 128, .head_dim = 64, .heads = 2, .kv_heads = 1, .ffn = 384, .vocab = 256}>;

/// One micro-batch of its training.
inline constexpr Run small_run{.seq = 128, .batch = 8};

}  // namespace examples
