// SPDX-License-Identifier: MIT
// The same of sizes whose products overflow.
// expect: sdepth: this size is larger than the largest one shown
// expect: size_name::width
// numbers: size_too_large 0 4611686018427387904 1048576
#include "everything.hpp"

#ifdef TWIN
using M = Good;
#else
constexpr Dims huge = [] {
    Dims d = small;
    d.width = d.vocab = d.ffn = d.heads = d.head_dim = 1LL << 62;
    return d;
}();
using M = Model<good_formula, huge>;
#endif
static_assert(everything_as_usual<M>());
inline std::string run() { return everything_runs<M>(); }
