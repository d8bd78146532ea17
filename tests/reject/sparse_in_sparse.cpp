// SPDX-License-Identifier: MIT
// A sparse layer around a sparse layer.
// expect: sdepth: sparse inside sparse: multiply the two sparsities into one
// numbers: sparse_in_sparse 2 4 2
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + sparse<8> + dense;
using M = Model<formula, small>;
#else
constexpr auto formula = dense + sparse<4>(sparse<2>) + dense;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 3>());
