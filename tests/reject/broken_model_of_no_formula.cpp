// SPDX-License-Identifier: MIT
// The same of a number in the place of a formula.
// expect: sdepth: Model needs a formula
// numbers: not_a_formula 0
#include "everything.hpp"

#ifdef TWIN
using M = Good;
#else
using M = Model<4, small>;
#endif
static_assert(everything_as_usual<M>());
inline std::string run() { return everything_runs<M>(); }
