// SPDX-License-Identifier: MIT
// A micro-batch of more tokens than an int numbers.
// expect: sdepth: too many tokens: a micro-batch holds at most 2\^30, a step fits 63 bits: lower Run::batch
// numbers: run_tokens_fit 1073741888 1073741888
#include "run.hpp"

#ifdef TWIN
constexpr Run use{.seq = 64, .batch = 1 << 24};
#else
constexpr Run use{.seq = 64, .batch = (1 << 24) + 1};
#endif
static_assert(used_as_usual<use>());
