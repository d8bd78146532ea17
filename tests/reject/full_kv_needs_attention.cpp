// SPDX-License-Identifier: MIT
// Full keys around a mixer without keys.
// expect: sdepth: full keys need an attention mixer: use key_scope::selected
// numbers: full_kv_needs_attention 2 4
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = dense + sparse<4, sparse_policy{.keys = key_scope::full}> + dense;
using M = Model<formula, small>;
#else
constexpr auto formula = dense + sparse<4, sparse_policy{.keys = key_scope::full}>(mamba) + dense;
using M = Model<formula, small>;
#endif
static_assert(counted_as_usual<M, 3>());
