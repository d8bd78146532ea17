// SPDX-License-Identifier: MIT
// A budget of more tokens than can be counted: an argument, so the error is the compiler's, and shows our line.
// own text: of the exception
// expect: "sdepth: tokens_for: the budget must buy 0 to 9e18 tokens
#include "formula.hpp"

constexpr auto formula = dense * 2_c;
using M = Model<formula, small>;
constexpr Run use{.seq = 64};
#ifdef TWIN
constexpr double compute = 1e20;
#else
constexpr double compute = 1e40;
#endif
[[maybe_unused]] constexpr token_budget bought = tokens_for<M, use>(compute);
