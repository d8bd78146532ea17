// SPDX-License-Identifier: MIT
// A rule of a user's layer: the error names the type and shows the numbers of its verdict.
// expect: sdepth: a layer's own check failed: see check\(\) of the type named here
// expect: Pool
// numbers: layer_own 2 64 7
#include "own_layer.hpp"

struct Pool : OwnLayer {
    static constexpr verdict check(const Dims& d) {
#ifdef TWIN
        return detail::require(d.width % 8 == 0, rule::layer_own, d.width, 8);
#else
        return detail::require(d.width % 7 == 0, rule::layer_own, d.width, 7);
#endif
    }
};

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
