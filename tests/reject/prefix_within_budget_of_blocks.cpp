// SPDX-License-Identifier: MIT
// The blocks of a plan that there is none of: an argument, so the error is the compiler's, and shows our line.
// own text: of the exception
// expect: "sdepth: blocks_of: no such plan: see check_plan\(plan\) for the broken rule"
#include "formula.hpp"
#include "sdepth/planner.hpp"

#ifdef TWIN
constexpr x_mod_plan plan{.active = 28, .prefix = 4, .stride = 4, .sparsity = 8};
#else
constexpr x_mod_plan plan{.active = 28, .prefix = 4, .stride = {1, 1LL << 62}, .sparsity = 1LL << 40};
#endif
[[maybe_unused]] constexpr x_mod_blocks blocks = blocks_of(plan);
