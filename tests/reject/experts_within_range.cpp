// SPDX-License-Identifier: MIT
// Five experts of four.
// expect: sdepth: experts per token must be within 1 and the number of experts
// numbers: experts_within_range 2 5 4
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + moe<4, 4>;
using M = Model<formula, small>;
#else
constexpr auto formula = dense + moe<4, 5>;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 2>());
