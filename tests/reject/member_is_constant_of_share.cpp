// SPDX-License-Identifier: MIT
// A share of a tensor that divides by zero.
// expect: sdepth: the layer's member named here is not constant: make it static constexpr, without x / 0
// expect: Pool
// expect: layer_member::tensors
// numbers: member_is_constant 2
#include "own_layer.hpp"

struct Pool : OwnLayer {
    static constexpr tensor_rows tensors(const Dims& d) {
        tensor_rows rows = OwnLayer::tensors(d);
#ifdef TWIN
        rows.begin()->active = ratio(1, 2);
#else
        rows.begin()->active = ratio(1, 0);
#endif
        return rows;
    }
};

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
