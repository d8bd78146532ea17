// SPDX-License-Identifier: MIT
// The two parts in each other's place, under sparse depth.
// expect: sdepth: layer<Mixer, Ffn> takes one mixer and one feed-forward part
// expect: mixer_is_an_ffn|part_fault\)5
// numbers: parts_fit 2
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + sparse<4>(layer<Attention<>, SwiGLU<>>) + dense;
#else
constexpr auto formula = dense + sparse<4>(layer<SwiGLU<>, Attention<>>) + dense;
#endif
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
