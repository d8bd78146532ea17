// SPDX-License-Identifier: MIT
// Data of a layer under sparse depth that no constant can be made of.
// expect: sdepth: the layer's member named here is not constant: make it static constexpr, without x / 0
// expect: Pool
// expect: layer_member::has_mixer
// numbers: member_is_constant 2
#include "own_layer.hpp"

struct Pool : OwnLayer {
#ifdef TWIN
    static constexpr bool has_mixer = true;
#else
    static bool has_mixer;
#endif
};

constexpr auto formula = dense + sparse<4>(Pool{}) + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
