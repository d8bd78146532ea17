// SPDX-License-Identifier: MIT
// Arguments of what decoding adds to a forward pass: positions in the whole sequence, and the cache of keys and values.
// Rank 5.
#pragma once

#include "sdepth/rows.hpp"

namespace sdepth::inline v0 {

/// positions[b, j] = start[b] + ids[b, j] of live rows.
struct PositionsArgs {
    batch_rows rows;
    const int* ids = nullptr;    // [N]
    const int* start = nullptr;  // [B], rows of the sequence before this pass
    int* positions = nullptr;    // [N]
};

/// Appends the live rows' keys and values to a cache: row count[b] + j of sequence b becomes row j; count[b] += live.
/// The cache holds executed rows only; `capacity` is never exceeded by a caller that keeps its context.
template <class P>
struct CacheArgs {
    batch_rows rows;
    int width = 0;                               // Hkv h
    int capacity = 0;                            // rows of the cache in a sequence
    const typename P::activation* k = nullptr;   // [N, width]
    const typename P::activation* v = nullptr;   // [N, width]
    const int* positions = nullptr;              // [N]
    typename P::activation* cached_k = nullptr;  // [B, capacity, width]
    typename P::activation* cached_v = nullptr;  // [B, capacity, width]
    int* cached_positions = nullptr;             // [B, capacity], rising
    int* count = nullptr;                        // [B]
};

}  // namespace sdepth::inline v0
