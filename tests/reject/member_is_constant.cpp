// SPDX-License-Identifier: MIT
// A layer of one's own whose tensors no constant can be made of.
// expect: sdepth: the layer's member named here is not constant: make it static constexpr, without x / 0
// expect: Pool
// expect: layer_member::tensors
// numbers: member_is_constant 2
#include "own_layer.hpp"

struct Pool : OwnLayer {
#ifdef TWIN
    static constexpr tensor_rows tensors(const Dims&) { return tensor_rows{}; }
#else
    static tensor_rows tensors(const Dims&) { return tensor_rows{}; }
#endif
};

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
