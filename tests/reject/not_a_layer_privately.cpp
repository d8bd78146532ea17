// SPDX-License-Identifier: MIT
// A layer of one's own that derives from the base of layers as a class does by default.
// expect: sdepth: not a layer: derive the type named here publicly from sdepth::layer_base
// expect: not_a_layer.*\bPool\b
#include "own_layer.hpp"

#ifdef TWIN
class Pool : public OwnLayer {};
#else
class Pool : OwnLayer {
  public:
    using OwnLayer::causal, OwnLayer::check, OwnLayer::describe, OwnLayer::has_ffn, OwnLayer::has_mixer,
        OwnLayer::mixing, OwnLayer::name, OwnLayer::state, OwnLayer::tensors;
};
#endif

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
