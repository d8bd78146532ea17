// SPDX-License-Identifier: MIT
// Documents longer than the sequence that holds them.
// expect: sdepth: Run::document is longer than Run::seq: shorten it, or use 0 for one document a sequence
// numbers: document_within_sequence 65 64
#include "run.hpp"

#ifdef TWIN
constexpr Run use{.seq = 64, .batch = 2, .document = 64};
#else
constexpr Run use{.seq = 64, .batch = 2, .document = 65};
#endif
static_assert(used_as_usual<use>());
