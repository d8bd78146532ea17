// SPDX-License-Identifier: MIT
// A broken rule is one error, whatever is asked of the model.
// expect: sdepth: heads must be a multiple of kv_heads
// numbers: kv_heads_divide_heads 1 5 2
#include "everything.hpp"

#ifdef TWIN
using M = Good;
#else
using M = Model<good_formula, with(&Dims::heads, 5)>;
#endif
static_assert(everything_as_usual<M>());
inline std::string run() { return everything_runs<M>(); }
