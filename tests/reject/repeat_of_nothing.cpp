// SPDX-License-Identifier: MIT
// A repeat of nothing, inside a repeated block.
// expect: sdepth: a repeat or loop needs at least one pass
// numbers: repeat_of_nothing 3 0
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense * 2_c + sparse<4> * 1_c + dense;
using M = Model<formula, small>;
#else
constexpr auto formula = dense * 2_c + sparse<4> * 0_c + dense;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 4>());
