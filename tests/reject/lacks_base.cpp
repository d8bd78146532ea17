// SPDX-License-Identifier: MIT
// A layer of one's own with every member, derived from the base of formulas.
// expect: sdepth: not a layer: this type needs the member or public base named here: see layer.hpp
// expect: Pool
// expect: layer_member::layer_base
// numbers: lacks_member 2
#include "own_layer.hpp"

#ifdef TWIN
struct Pool : OwnLayerOn<layer_base> {};
#else
struct Pool : OwnLayerOn<pattern_base> {};
#endif

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
