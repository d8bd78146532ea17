// SPDX-License-Identifier: MIT
// A feed-forward part in a sum of layers.
// expect: sdepth: a feed-forward part alone is not a layer: write layer<None, Ffn>, as ffn_only does
// expect: ffn_alone.*SwiGLU
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = attention_only + layer<None, SwiGLU<>>;
#else
constexpr auto formula = attention_only + SwiGLU<>{};
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 2>());
static_assert(params<M>.total == 69'856);
