// SPDX-License-Identifier: MIT
// Depth attention with nothing before it to read.
// expect: sdepth: depth attention has no earlier slot to read: put a writing layer before it
// numbers: depth_has_slots 3
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + moda + moda_last;
using M = Model<formula, small>;
#else
constexpr auto formula = dense * 2_c + moda_last;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 3>());
