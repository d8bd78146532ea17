// SPDX-License-Identifier: MIT
// Two tensors of one name in a layer of one's own: a file could hold only one of them.
// expect: sdepth: each tensor of a layer needs a name of its own, with {e} for its copies: mend tensors\(\)
// expect: Pool
// numbers: tensor_names_differ 2 2 1
#include "own_layer.hpp"

struct Pool : OwnLayer {
    static constexpr tensor_rows tensors(const Dims& d) {
        tensor_rows rows = OwnLayer::tensors(d);
#ifdef TWIN
        rows.add(matrix("other", role::output, d.width, d.width));
#else
        rows.add(matrix("weight", role::output, d.width, d.width));
#endif
        return rows;
    }
};

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
