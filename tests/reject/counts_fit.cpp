// SPDX-License-Identifier: MIT
// More parameters than 63 bits hold.
// expect: sdepth: the parameter count does not fit 63 bits: use smaller sizes
// numbers: counts_fit 9223372036854775807
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense * 9'000'000_c;
using M = Model<formula, small>;
#else
constexpr auto formula = dense * 9'000'000'000'000'000_c;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 9000000>());
