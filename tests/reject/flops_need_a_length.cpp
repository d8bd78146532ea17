// SPDX-License-Identifier: MIT
// FLOPs of a run without a length.
// expect: sdepth: flops need a length: set Run::seq
#include "formula.hpp"

using M = Model<dense * 2_c, small>;
#ifdef TWIN
constexpr Run run_of_two{.seq = 64, .batch = 2};
#else
constexpr Run run_of_two{.batch = 2};
#endif
static_assert(flops<M, run_of_two>.forward.per_token() != 0);
