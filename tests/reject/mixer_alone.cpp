// SPDX-License-Identifier: MIT
// A mixer repeated as if it were a layer.
// expect: sdepth: a mixer alone is not a layer: write layer<Mixer, None>, as attention_only does
// expect: mixer_alone.*Attention
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = layer<Attention<>, None> * 4_c;
#else
constexpr auto formula = Attention<>{} * 4_c;
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 4>());
static_assert(params<M>.total == 82'368);
