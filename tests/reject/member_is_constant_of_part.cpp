// SPDX-License-Identifier: MIT
// A feed-forward part of one's own whose check no constant can be made of.
// expect: sdepth: the layer's member named here is not constant: make it static constexpr, without x / 0
// expect: Pool
// expect: layer_member::check
// numbers: member_is_constant 2
#include "formula.hpp"

struct Pool : SwiGLU<> {
#ifdef TWIN
    static constexpr verdict check(const Dims&) { return {}; }
#else
    static verdict check(const Dims&) { return {}; }
#endif
};

constexpr auto formula = dense + layer<None, Pool> + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
