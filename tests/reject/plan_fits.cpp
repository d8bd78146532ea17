// SPDX-License-Identifier: MIT
// More bytes of memory than 63 bits hold.
// expect: sdepth: the plan's bytes do not fit 63 bits: use a smaller Run::batch or Run::seq
// numbers: plan_fits 1024 1048576
#include "formula.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "sdepth/plan.hpp"

constexpr Dims wide = with(&Dims::ffn, 1 << 30);
using M = Model<dense * 2_c, wide>;
#ifdef TWIN
constexpr Run use{.seq = 1 << 10};
#else
constexpr Run use{.seq = 1 << 20, .batch = 1 << 10};
#endif
static_assert(plan<M, host<float>, use>::peak_bytes > 1'000'000'000'000);
static_assert(plan<M, host<float>, use>::saved_offsets.size() == 1);
