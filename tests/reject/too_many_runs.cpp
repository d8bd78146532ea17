// SPDX-License-Identifier: MIT
// A block of two layers, repeated more often than a program can list.
// expect: sdepth: the formula unrolls to too many runs: repeat single layers
// numbers: too_many_runs 9000 8192
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = (dense + mamba) * 4096_c;
using M = Model<formula, small>;
#else
constexpr auto formula = (dense + mamba) * 4500_c;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 8192>());
