// SPDX-License-Identifier: MIT
// K of zero.
// expect: sdepth: sparse<K> needs K of at least 1: the layer executes 1/K of the rows
// numbers: sparsity_at_least_one 3 0
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense * 2_c + sparse<1> * 4_c + dense;
using M = Model<formula, small>;
#else
constexpr auto formula = dense * 2_c + sparse<0> * 4_c + dense;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 7>());
