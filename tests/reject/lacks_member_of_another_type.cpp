// SPDX-License-Identifier: MIT
// A function where a layer has data: as a bool it would be true whatever it returns.
// expect: sdepth: not a layer: this type needs the member or public base named here: see layer.hpp
// expect: Pool
// expect: layer_member::has_ffn
// numbers: lacks_member 2
#include "own_layer.hpp"

struct Pool : OwnLayer {
#ifdef TWIN
    static constexpr bool has_ffn = false;
#else
    static constexpr bool has_ffn() { return false; }
#endif
};

constexpr auto formula = dense + sparse<4>(Pool{}) + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
