// SPDX-License-Identifier: MIT
// A layer of one's own whose second tensor has no rows: its check() should have asked for the size.
// expect: sdepth: a tensor row needs rows and copies from 1
// expect: Pool
// numbers: tensor_has_elements 2 2 -64
#include "own_layer.hpp"

struct Pool : OwnLayer {
    static constexpr tensor_rows tensors(const Dims& d) {
        tensor_rows rows;
        rows.add(matrix("in", role::input, d.width, d.width));
#ifdef TWIN
        rows.add(matrix("out", role::output, d.width, d.width));
#else
        rows.add(matrix("out", role::output, -d.width, d.width));
#endif
        return rows;
    }
};

constexpr auto formula = dense + Pool{};
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 2>());
