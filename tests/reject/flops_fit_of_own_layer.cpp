// SPDX-License-Identifier: MIT
// A layer of one's own whose work in FLOPs does not fit 63 bits.
// expect: sdepth: the FLOPs do not fit 63 bits: use a shorter Run::seq, smaller sizes or fewer layers
// numbers: flops_fit 64
#include "own_layer.hpp"

struct Pool : OwnLayer {
#ifdef TWIN
    static constexpr mixing_work mixing(const Dims&) { return {.per_pair = 1LL << 40}; }
#else
    static constexpr mixing_work mixing(const Dims&) { return {.per_pair = 1LL << 62}; }
#endif
};

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
