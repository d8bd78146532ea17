// SPDX-License-Identifier: MIT
// A prefix deeper than the whole budget.
// expect: sdepth: a plan's prefix must lie within 0 and its active layers: change .prefix or .active
// expect: prefix_within_budget
// numbers: 28 4
#include "sdepth/planner.hpp"

using namespace sdepth;

#ifdef TWIN
constexpr x_mod_plan plan{.active = 28, .prefix = 4, .stride = 3, .sparsity = 16};
#else
constexpr x_mod_plan plan{.active = 4, .prefix = 28, .stride = 3, .sparsity = 16};
#endif
using M = Model<planned<plan>, Dims{.width = 64, .head_dim = 16, .heads = 4, .ffn = 128, .vocab = 256}>;
static_assert(M::layers > 0);
