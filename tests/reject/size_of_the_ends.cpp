// SPDX-License-Identifier: MIT
// A vocabulary left out: it belongs to no layer, so the layer number is 0.
// expect: sdepth: this size must be positive
// expect: size_name::vocab
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense;
using M = Model<formula, small>;
#else
constexpr auto formula = dense;
using M = Model<formula, with(&Dims::vocab, 0)>;
#endif
static_assert(counted_as_usual<M, 1>());
