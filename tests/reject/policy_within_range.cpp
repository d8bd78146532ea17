// SPDX-License-Identifier: MIT
// A real number of a policy outside of its range, shown in millionths.
// expect: sdepth: this number or choice of a policy is out of its range
// expect: policy_name::cut_rate
// numbers: policy_within_range 2 1500000
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + sparse<4, sparse_policy{.cut_rate = 1}> + dense;
using M = Model<formula, small>;
#else
constexpr auto formula = dense + sparse<4, sparse_policy{.cut_rate = 1.5}> + dense;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 3>());
