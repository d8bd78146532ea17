// SPDX-License-Identifier: MIT
// More FLOPs than 63 bits hold, in everything that reads them.
// expect: sdepth: the FLOPs do not fit 63 bits: use a shorter Run::seq, smaller sizes or fewer layers
// numbers: flops_fit 1000000000
#include "formula.hpp"
#include "sdepth/alignment.hpp"
#include "sdepth/token_budget.hpp"

using M = Model<dense * 2_c, small>;
#ifdef TWIN
constexpr long long length = 1'000'000;
#else
constexpr long long length = 1'000'000'000;
#endif
constexpr Run use{.seq = length};
static_assert(flops<M, use>.forward.sequence.value() > 1e9);
static_assert(flops<M, use>.paper.per_token() == 512'147'456);
static_assert(tokens_for<M, use>(1e18).forward == 1'952'562'661 && matched<M, M, use>.flops == ratio(1));
