// SPDX-License-Identifier: MIT
// What decoding adds to a forward pass: positions, and the cache of keys and values. Rank 5.
#pragma once

#include <algorithm>

#include "sdepth/error.hpp"
#include "sdepth/kernels/host/parallel.hpp"
#include "sdepth/ops/decode.hpp"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0::on_host {

/// See PositionsArgs.
inline void positions(workers& team, const PositionsArgs& a) {
    for_rows(team, a.rows, [&](long long row) { a.positions[row] = a.start[row / a.rows.each.capacity] + a.ids[row]; });
}

/// See CacheArgs.
template <class T>
void cache(const CacheArgs<uniform_precision<T>>& a) {
    for (int b = 0; b < a.rows.batch; ++b) {
        const int live = a.rows.each.of(b);
        if (a.count[b] + live > a.capacity) throw error("decoding: the context is full; start with a longer one");
        const long long from = a.rows.first(b);
        const long long to = static_cast<long long>(b) * a.capacity + a.count[b];
        std::copy_n(a.k + from * a.width, static_cast<long long>(live) * a.width, a.cached_k + to * a.width);
        std::copy_n(a.v + from * a.width, static_cast<long long>(live) * a.width, a.cached_v + to * a.width);
        std::copy_n(a.positions + from, live, a.cached_positions + to);
        a.count[b] += live;
    }
}

}  // namespace sdepth::inline v0::on_host
