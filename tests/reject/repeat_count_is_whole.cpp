// SPDX-License-Identifier: MIT
// A count with a point: Boost.Hana's own literal would read it as 380.
// expect: sdepth: a count is a whole number below 2\^63 - 1: write 4_c, decimal or behind 0x or 0b
// expect: repeat_count_is_whole
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense * 4_c;
#else
constexpr auto formula = dense * 4.0_c;
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 4>());
