// SPDX-License-Identifier: MIT
// A dense partner of three and a half layers.
// expect: sdepth: no model of equal active depth: make sparse layers of a kind a multiple of K
// numbers: active_depth_is_whole 7 2
#include "formula.hpp"
#include "sdepth/alignment.hpp"
#include "sdepth/partner.hpp"

constexpr Run run{.seq = 128};
#ifdef TWIN
constexpr auto formula = dense + sparse<4> * 8_c + dense;
#else
constexpr auto formula = dense + sparse<4> * 6_c + dense;
#endif
using M = Model<formula, small>;
using Partner = equal_active<M>;
static_assert(counted_as_usual<Partner, 4>());
static_assert(params<Partner>.total == 180'928);
static_assert(active_depth<Partner> == ratio(4));
static_assert(matched<M, Partner, run>.flops == ratio(23, 26));
static_assert(alignment<M, Partner, run>.depth.first == ratio(10));
static_assert(alignment<M, Partner, run>.active.second == ratio(180'224));
using Wide = equal_params_wider<M>;
static_assert(counted_as_usual<Wide, 4>() && Wide::layers == 4);
static_assert(params<Wide>.total == 426'688);
