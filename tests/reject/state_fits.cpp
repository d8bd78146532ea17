// SPDX-License-Identifier: MIT
// More bytes of keys and values than 63 bits hold.
// expect: sdepth: the state does not fit 63 bits: use a shorter Run::seq, smaller states or fewer layers
// numbers: state_fits 1073741824
#include "formula.hpp"

using M = Model<dense * 1'000'000'000_c, small>;
#ifdef TWIN
constexpr Run use{.seq = 1 << 20};
#else
constexpr Run use{.seq = 1 << 30};
#endif
static_assert(state<M, use>.kv_capacity == 1'000'000'000LL * 2 * 32 * 2 * (1 << 20));
static_assert(state<M, use>.kv_expected == ratio(1'000'000'000LL * 2 * 32 * 2 * (1 << 20)));
