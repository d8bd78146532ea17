// SPDX-License-Identifier: MIT
// A type without any member of a layer, repeated.
// expect: sdepth: not a layer: derive the type publicly from layer_base and add the member named here
// expect: not_a_layer.*\bX\b
#include "formula.hpp"

struct X {};  // not a layer

#ifdef TWIN
constexpr auto formula = dense * 4_c;
#else
constexpr auto formula = X{} * 4_c;
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 4>());
static_assert(params<M>.total == 180'928);
