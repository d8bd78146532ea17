// SPDX-License-Identifier: MIT
// A size of a policy that overflows whatever it is multiplied by.
// expect: sdepth: this size is larger than the largest one shown
// expect: size_name::state
// numbers: size_too_large 2 4611686018427387904 1048576
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + layer<S4<s4_policy{.state = 1LL << 20}>, None>;
using M = Model<formula, small>;
#else
constexpr auto formula = dense + layer<S4<s4_policy{.state = 1LL << 62}>, None>;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 2>());
