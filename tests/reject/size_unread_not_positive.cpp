// SPDX-License-Identifier: MIT
// A negative size that no layer reads.
// expect: sdepth: this size must be positive: set it in Dims or in the policy of the layer
// expect: size_name::expert_ffn
// numbers: size_not_positive 0 -1
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense * 2_c;
using M = Model<formula, with(&Dims::expert_ffn, 0)>;
#else
constexpr auto formula = dense * 2_c;
using M = Model<formula, with(&Dims::expert_ffn, -1)>;
#endif
static_assert(counted_as_usual<M, 2>());
