// SPDX-License-Identifier: MIT
// A misspelt size of a run, and counts in it: the one error names the size.
// own text: the compiler's
// expect: sequence
#include "formula.hpp"

constexpr auto formula = dense * 2_c;
using M = Model<formula, small>;
#ifdef TWIN
inline constexpr Run use{.seq = 64};
#else
inline constexpr Run use{.sequence = 64};
#endif
static_assert(flops<M, use>.forward.sequence == flops<M, use>.useful.sequence / ratio(3));
static_assert(state<M, use>.kv_capacity == 2 * 2 * 32 * 2 * 64);
