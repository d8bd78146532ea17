// SPDX-License-Identifier: MIT
// A type without any member of a layer in a sum.
// expect: sdepth: not a layer: derive the type publicly from layer_base and add the member named here
// expect: not_a_layer.*\bX\b
// expect: layer_member\)?(::name|1)|member::name
#include "formula.hpp"

struct X {};  // not a layer

#ifdef TWIN
constexpr auto formula = dense + mamba;
#else
constexpr auto formula = dense + X{};
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 2>());
static_assert(params<M>.total == 102'560);
