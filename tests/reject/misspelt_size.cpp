// SPDX-License-Identifier: MIT
// A misspelt size: designated initialisers make it one error, which names it.
// own text: the compiler's
// expect: hidden_dim
#include "formula.hpp"

#ifdef TWIN
inline constexpr Dims sizes{.width = 64, .head_dim = 16, .heads = 4, .ffn = 128, .vocab = 256};
#else
inline constexpr Dims sizes{.width = 64, .head_dim = 16, .heads = 4, .hidden_dim = 128, .vocab = 256};
#endif
