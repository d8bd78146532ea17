// SPDX-License-Identifier: MIT
// Counts of a layer, or of a formula without sizes; its digest and its partners.
// expect: sdepth: only models have counts: name one, using M = Model<formula, sizes>
// expect: countable
#include "formula.hpp"
#include "sdepth/digest.hpp"
#include "sdepth/partner.hpp"
#include "sdepth/tensor_table.hpp"

constexpr auto formula = dense * 2_c;
#ifdef TWIN
using M = Model<formula, small>;
#else
using M = decltype(formula);
#endif
static_assert(params<M>.total > params<M>.paper && active_layers<M> == ratio(2));
static_assert(flops<M, Run{.seq = 64}>.forward.per_token().value() > 1 && state<M, Run{.seq = 64}>.kv_capacity > 0);
static_assert(tensor_table<M>.elements > 0 && active_depth<M> == ratio(2));
static_assert(equal_active<M>::layers == 2 && equal_params<M>::layers == 2 && is_causal<M> && digest<M> != 0);
static_assert(equal_flops<M, Run{.seq = 64}>::layers == 2 && equal_params_wider<M>::layers == 2 && require_causal<M>());
