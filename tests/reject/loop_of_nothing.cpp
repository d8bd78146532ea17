// SPDX-License-Identifier: MIT
// A loop without a pass.
// expect: sdepth: a repeat or loop needs at least one pass
// numbers: repeat_of_nothing 2 0
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + loop<1>(dense + mamba);
using M = Model<formula, small>;
#else
constexpr auto formula = dense + loop<0>(dense + mamba);
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 3>());
