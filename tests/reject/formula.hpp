// SPDX-License-Identifier: MIT
// What the cases share: the library, small sizes, and a user's assertions, which must not add errors of their own.
#pragma once

#include "sdepth/sdepth.hpp"

using namespace sdepth;            // NOLINT(google-build-using-namespace): every case is one program
using namespace sdepth::literals;  // NOLINT(google-build-using-namespace)

inline constexpr Dims small{
    .width = 64, .head_dim = 16, .heads = 4, .kv_heads = 2, .ffn = 128, .expert_ffn = 32, .vocab = 256};

/// `small` with one other size.
constexpr Dims with(long long Dims::*size, long long value) {
    Dims d = small;
    d.*size = value;
    return d;
}

/// What programs assert about a model.
template <class M, long long layers>
constexpr bool counted_as_usual() {
    static_assert(M::layers == layers && M::ffn_layers <= layers);
    static_assert(params<M>.total > params<M>.paper && params<M>.active.value() > 0);
    static_assert(flops<M, Run{.seq = 64}>.useful.sequence == flops<M, Run{.seq = 64}>.forward.sequence * ratio(3));
    static_assert(flops<M, Run{.seq = 64}>.paper.per_token().value() > 0);
    static_assert(state<M, Run{.seq = 64}>.kv_capacity >= 0);
    static_assert(digest<M> != 0);
    return true;
}
