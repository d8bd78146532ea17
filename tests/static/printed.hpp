// SPDX-License-Identifier: MIT
// What the tables of a source print, from a model: rows of the static tests read like rows of the table. Models are
// passed as types and formulas as arguments, never sizes as template parameters: nvcc 13 misprints those.
#pragma once

#include "sdepth/presets.hpp"
#include "sdepth/sdepth.hpp"

namespace sdepth_test {

using namespace sdepth;

/// x in units of 1/scale, rounded half up: what a table with that many digits prints.
constexpr long long rounded(ratio x, long long scale) {
    const ratio y = x * ratio(scale) + ratio(1, 2);
    return y.overflowed() ? -1 : y.num() / y.den();
}

/// Parameters as the X-MoD paper counts them, matrices alone.
template <class M>
constexpr long long matrices = params<M>.paper;
/// Every trained number.
template <class M>
constexpr long long total = params<M>.total;
/// FLOPs of one token at 32,768 tokens, X-MoD paper.
template <class M>
constexpr ratio token_flops = flops<M, Run{.seq = 32768}>.paper.per_token();

}  // namespace sdepth_test
