// SPDX-License-Identifier: MIT
// More FLOPs than 63 bits hold.
// expect: sdepth: a FLOP count does not fit 63 bits: use a shorter Run::seq
#include "formula.hpp"

using M = Model<dense * 2_c, small>;
#ifdef TWIN
constexpr long long length = 1'000'000;
#else
constexpr long long length = 1'000'000'000'000'000;
#endif
static_assert(flops<M, Run{.seq = length}>.forward.sequence.value() > 0);
