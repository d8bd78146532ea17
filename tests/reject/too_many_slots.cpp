// SPDX-License-Identifier: MIT
// More depth slots at one position than an int numbers.
// expect: sdepth: this size is larger than the largest one shown
// expect: size_name::slots
// numbers: size_too_large 1 4000000000 1073741824
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = moda * 2'000'000_c;
constexpr long long layers = 2'000'000;
using M = Model<formula, small>;
#else
constexpr auto formula = moda * 2'000'000'000_c;
constexpr long long layers = 2'000'000'000;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, layers>());
