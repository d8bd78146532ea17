// SPDX-License-Identifier: MIT
// State of a sequence without a length.
// expect: sdepth: state needs a length: set Run::seq
#include "formula.hpp"

using M = Model<dense * 2_c, small>;
#ifdef TWIN
constexpr Run use{.seq = 64};
#else
constexpr Run use{};
#endif
static_assert(state<M, use>.kv_capacity == 2 * 2 * 2 * 16 * 2 * 64);
