// SPDX-License-Identifier: MIT
// Heads left out of the sizes.
// expect: sdepth: this size must be positive: set it in Dims or in the policy of the layer
// expect: size_name::heads
// numbers: size_not_positive 3
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = mamba * 2_c + dense;
using M = Model<formula, small>;
#else
constexpr auto formula = mamba * 2_c + dense;
using M = Model<formula, with(&Dims::heads, 0)>;
#endif
static_assert(counted_as_usual<M, 3>());
