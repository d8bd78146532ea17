// SPDX-License-Identifier: MIT
// The empty part as a term of a sum.
// expect: sdepth: None is the empty part of layer<Mixer, Ffn>, not a layer: leave the term out
// expect: none_alone
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + dense;
#else
constexpr auto formula = None{} + dense + dense;
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 2>());
