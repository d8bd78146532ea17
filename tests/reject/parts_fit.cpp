// SPDX-License-Identifier: MIT
// A mixer where the feed-forward part belongs: it would count as one and its own work would be lost.
// expect: sdepth: layer<Mixer, Ffn> takes one mixer and one feed-forward part
// expect: ffn_is_a_mixer|part_fault\)1
// numbers: parts_fit 3
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense * 2_c + layer<Mamba2<>, SwiGLU<>> + dense;
using M = Model<formula, small>;
#else
constexpr auto formula = dense * 2_c + layer<Mamba2<>, Attention<>> + dense;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 4>());
