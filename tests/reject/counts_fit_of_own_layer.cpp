// SPDX-License-Identifier: MIT
// A tensor of a layer of one's own that alone has more elements than 63 bits hold: the error shows the layer.
// expect: sdepth: the parameters up to this layer do not fit 63 bits: use smaller sizes or fewer layers
// numbers: counts_fit 2 9223372036854775807
#include "own_layer.hpp"

struct Pool : OwnLayer {
    static constexpr tensor_rows tensors(const Dims&) {
        tensor_rows rows;
#ifdef TWIN
        rows.add(matrix("weight", role::output, 1LL << 20, 1LL << 20));
#else
        rows.add(matrix("weight", role::output, 1LL << 40, 1LL << 40));
#endif
        return rows;
    }
};

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
