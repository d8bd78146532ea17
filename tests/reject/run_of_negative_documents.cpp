// SPDX-License-Identifier: MIT
// Documents of a negative length.
// expect: sdepth: this size of a Run must be from 1, document and context from 0, to 2\^30
// expect: run_size::document
// numbers: run_within_range -5
#include "run.hpp"

#ifdef TWIN
constexpr Run use{.seq = 64, .batch = 2, .document = 5};
#else
constexpr Run use{.seq = 64, .batch = 2, .document = -5};
#endif
static_assert(used_as_usual<use>());
inline void run() { run_as_usual<use>(); }
