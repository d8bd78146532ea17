// SPDX-License-Identifier: MIT
// A recurrent state of a layer of one's own whose bytes do not fit 63 bits at any length.
// expect: sdepth: the state does not fit 63 bits: use a shorter Run::seq, smaller states or fewer layers
// numbers: state_fits 64
#include "own_layer.hpp"

struct Pool : OwnLayer {
#ifdef TWIN
    static constexpr state_size state(const Dims&) { return {.recurrent = 1LL << 52}; }
#else
    static constexpr state_size state(const Dims&) { return {.recurrent = 1LL << 62}; }
#endif
};

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
static_assert(state<M, Run{.seq = 64}>.recurrent == 1LL << 54);
