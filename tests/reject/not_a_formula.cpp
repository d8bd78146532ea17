// SPDX-License-Identifier: MIT
// Model of a number, where a layer was meant.
// expect: sdepth: Model needs a formula: layers, each derived from layer_base, joined by \+ and \*
// numbers: not_a_formula 0
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense * 4_c;
using M = Model<formula, small>;
#else
constexpr auto formula = 4;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 4>());
