// SPDX-License-Identifier: MIT
// A count that differs from the expected one: both numbers are shown.
// expect: sdepth: counted \(first number\) differs from expected \(second number\)
// numbers: counted 2 3
#include "formula.hpp"

using M = Model<dense * 2_c, small>;
#ifdef TWIN
static_assert(counted<M::layers, 2>());
#else
static_assert(counted<M::layers, 3>());
#endif
