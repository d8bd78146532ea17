// SPDX-License-Identifier: MIT
// The runs of a type that is no formula.
// expect: sdepth: only formulas have runs: write runs_of<decltype\(formula\)>
#include "formula.hpp"

#ifdef TWIN
using P = Dense;
#else
using P = int;
#endif
static_assert(runs_of<P>::layers == 1 && runs_of<P>::runs.size() == 1);
