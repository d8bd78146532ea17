// SPDX-License-Identifier: MIT
// The tokens of a run that there is none of: an argument, so the error is the compiler's, and shows our line.
// own text: of the exception
// expect: "sdepth: batch_tokens: no such run: see check_run\(run\) for the broken rule"
#include "formula.hpp"
#include "sdepth/token_budget.hpp"

#ifdef TWIN
constexpr Run use{.seq = 4};
#else
constexpr Run use{.seq = -4};
#endif
[[maybe_unused]] constexpr long long tokens = batch_tokens(use);
