// SPDX-License-Identifier: MIT
// Half a stride of five sparse layers is two and a half layers.
// expect: sdepth: a planned block has stride x sparsity sparse layers: make it a positive whole number
// numbers: stride_gives_whole_layers 5 2
#include "formula.hpp"
#include "sdepth/planner.hpp"

#ifdef TWIN
constexpr x_mod_plan plan_of_28{.active = 28, .prefix = 4, .stride = {1, 2}, .sparsity = 6};
#else
constexpr x_mod_plan plan_of_28{.active = 28, .prefix = 4, .stride = {1, 2}, .sparsity = 5};
#endif
using M = Model<planned<plan_of_28>, small>;
static_assert(counted_as_usual<M, 68>());
static_assert(params<M>.total == 2'553'584);
