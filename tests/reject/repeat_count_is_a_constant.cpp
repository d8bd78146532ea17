// SPDX-License-Identifier: MIT
// A plain integer where `4_c` is meant.
// expect: sdepth: the count of a repeat is a compile-time constant: write dense \* 4_c
// expect: repeat_count_is_a_constant
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense * 4_c;
#else
constexpr auto formula = dense * 4;
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 4>());
static_assert(params<M>.total == 180'928);
