// SPDX-License-Identifier: MIT
// A prefix deeper than the whole budget.
// expect: sdepth: a plan's prefix must lie within 0 and its active layers: change .prefix or .active
// numbers: prefix_within_budget 28 4
#include "formula.hpp"
#include "sdepth/planner.hpp"

#ifdef TWIN
constexpr x_mod_plan bounded_plan{.active = 28, .prefix = 4, .stride = 3, .sparsity = 16};
#else
constexpr x_mod_plan bounded_plan{.active = 4, .prefix = 28, .stride = 3, .sparsity = 16};
#endif
using M = Model<planned<bounded_plan>, small>;
static_assert(counted_as_usual<M, 298>());
static_assert(params<M>.total == 11'084'704);
