// SPDX-License-Identifier: MIT
// A run without a length, in everything that takes a run.
// expect: sdepth: this size of a Run must be from 1, document and context from 0, to 2\^30
// expect: run_size::seq
// numbers: run_within_range 0
#include "run.hpp"

#ifdef TWIN
constexpr Run use{.seq = 64, .batch = 2};
#else
constexpr Run use{.batch = 2};
#endif
static_assert(used_as_usual<use>());
inline void run() { run_as_usual<use>(); }
