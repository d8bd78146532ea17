// SPDX-License-Identifier: MIT
// Sizes whose product no integer holds: the first one is named, and the largest that is taken.
// expect: sdepth: this size is larger than the largest one shown: lower it in Dims or in the layer's policy
// expect: size_name::heads
// numbers: size_too_large 3 4000000000 1048576
#include "formula.hpp"

constexpr Dims sized(long long heads) {
    Dims d = with(&Dims::heads, heads);
    d.head_dim = heads;
    return d;
}
constexpr auto formula = mamba * 2_c + dense;
#ifdef TWIN
using M = Model<formula, sized(64)>;
#else
using M = Model<formula, sized(4'000'000'000)>;
#endif
static_assert(counted_as_usual<M, 3>());
