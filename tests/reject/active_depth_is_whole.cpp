// SPDX-License-Identifier: MIT
// A dense partner of three and a half layers.
// expect: sdepth: no model of equal active depth: make sparse layers of a kind a multiple of K
// expect: active_depth_is_whole
// numbers: 7 2
#include "sdepth/partner.hpp"

#include "sdepth/layers/sparse.hpp"

using namespace sdepth;
using namespace sdepth::literals;

constexpr Dims sizes{.width = 64, .head_dim = 16, .heads = 4, .ffn = 128, .vocab = 256};
#ifdef TWIN
using M = Model<dense + sparse<4> * 8_c + dense, sizes>;
#else
using M = Model<dense + sparse<4> * 6_c + dense, sizes>;
#endif
using Partner = equal_active<M>;
static_assert(Partner::layers > 0);
static_assert(alignment<M, Partner, Run{.seq = 128}>.depth.first == ratio(M::layers));
