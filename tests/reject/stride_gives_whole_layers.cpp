// SPDX-License-Identifier: MIT
// Half a stride of five sparse layers is two and a half layers.
// expect: sdepth: a planned block has stride x sparsity sparse layers: make it a positive whole number
// expect: stride_gives_whole_layers
// numbers: 5 2
#include "sdepth/planner.hpp"

using namespace sdepth;

#ifdef TWIN
constexpr x_mod_plan plan{.active = 28, .prefix = 4, .stride = {1, 2}, .sparsity = 6};
#else
constexpr x_mod_plan plan{.active = 28, .prefix = 4, .stride = {1, 2}, .sparsity = 5};
#endif
using M = Model<planned<plan>, Dims{.width = 64, .head_dim = 16, .heads = 4, .ffn = 128, .vocab = 256}>;
static_assert(M::layers > 0);
