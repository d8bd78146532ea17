// SPDX-License-Identifier: MIT
// A layer of one's own without a name.
// expect: sdepth: a layer needs a name, and one with matrices has a mixer or a feed-forward part: mend it
// expect: Pool
// expect: layer_member::name
// numbers: layer_members_agree 2
#include "own_layer.hpp"

struct Pool : OwnLayer {
#ifdef TWIN
    static constexpr std::string_view name = "pool";
#else
    static constexpr std::string_view name = "";
#endif
};

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
