// SPDX-License-Identifier: MIT
// A partner whose width would grow by nothing.
// expect: sdepth: equal_params_wider<M, Multiple> widens in multiples: make it at least 1
// expect: wider_stack
#include "formula.hpp"
#include "sdepth/partner.hpp"

constexpr auto formula = dense * 2_c;
using M = Model<formula, small>;
#ifdef TWIN
using Wide = equal_params_wider<M, 8>;
#else
using Wide = equal_params_wider<M, 0>;
#endif
static_assert(counted_as_usual<Wide, 2>());
