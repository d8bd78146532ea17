// SPDX-License-Identifier: MIT
// More parameters than 63 bits hold.
// expect: sdepth: the parameters up to this layer do not fit 63 bits: use smaller sizes or fewer layers
// numbers: counts_fit 1 9223372036854775807
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense * 9'000'000_c;
using M = Model<formula, small>;
#else
constexpr auto formula = dense * 9'000'000'000'000'000_c;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 9000000>());
