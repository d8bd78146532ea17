// SPDX-License-Identifier: MIT
// An expert layer around another, as `sparse<4>(dense)`.
// expect: sdepth: this layer wraps no other: sparse<4>\(a\) does; choose the parts of one by layer<Mixer, Ffn>
// expect: layer_wraps_no_other
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + moe<4, 2>;
#else
constexpr auto formula = dense + moe<4, 2>(dense);
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 2>());
