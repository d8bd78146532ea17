// SPDX-License-Identifier: MIT
// Five query heads on two key and value heads, first met deep in the formula.
// expect: sdepth: heads must be a multiple of kv_heads: change Dims::heads or Dims::kv_heads
// numbers: kv_heads_divide_heads 7 5 2
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = mamba * 6_c + (sparse<4> * 3_c + dense) * 2_c;
using M = Model<formula, with(&Dims::heads, 6)>;
#else
constexpr auto formula = mamba * 6_c + (sparse<4> * 3_c + dense) * 2_c;
using M = Model<formula, with(&Dims::heads, 5)>;
#endif
static_assert(counted_as_usual<M, 14>());
