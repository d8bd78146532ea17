// SPDX-License-Identifier: MIT
// What decoding adds to a forward pass: positions, and the cache of keys and values. Rank 5.
#pragma once

#include "sdepth/kernels/cuda/each_row.cuh"
#include "sdepth/ops/decode.hpp"

namespace sdepth::inline v0::on_cuda {

namespace detail {

static __global__ void __launch_bounds__(256) positions_kernel(const PositionsArgs a) {
    const long long row = blockIdx.x * 256LL + threadIdx.x;
    if (row >= a.rows.capacity()) return;
    const row_place place(a.rows, row);
    if (place.live(a.rows)) a.positions[row] = a.start[place.sequence] + a.ids[row];
}

// Keys and values of one row each; rows beyond the cache's capacity are left out.
template <class P>
struct cache_op {
    static constexpr bool takes_rows = true;
    CacheArgs<P> a;
    using loaded = struct { eight<typename P::activation> k, v; };

    __device__ long long begin(const row_place& p) const {
        const int to = a.count[p.sequence] + p.index;
        const long long row = static_cast<long long>(p.sequence) * a.capacity + to;
        if (to >= a.capacity) return -1;
        if (threadIdx.x % 32 == 0) a.cached_positions[row] = a.positions[p.row];
        return row * a.width;
    }
    template <bool whole>
    __device__ loaded load(long long, const row_place& p, int c, int n) const {
        return {load_eight<whole>(a.k + p.row * a.width + c, n), load_eight<whole>(a.v + p.row * a.width + c, n)};
    }
    template <bool whole>
    __device__ void store(long long to, const row_place&, int c, int n, const loaded& l) const {
        if (to < 0) return;
        float k[8], v[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) k[e] = to_float(l.k.x[e]), v[e] = to_float(l.v.x[e]);
        store_eight<whole>(a.cached_k + to + c, k, n);
        store_eight<whole>(a.cached_v + to + c, v, n);
    }
};

static __global__ void __launch_bounds__(256) count_rows_kernel(const batch_rows rows, int capacity, int* count) {
    const int b = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
    if (b < rows.batch) count[b] = min(capacity, count[b] + rows.each.of(b));
}

}  // namespace detail

/// See PositionsArgs.
inline void positions(const PositionsArgs& a, cudaStream_t stream) {
    detail::check_rows(a.rows, 1, "positions");
    if (a.rows.capacity() < 1) return;
    detail::positions_kernel<<<detail::blocks_of(a.rows.capacity(), 256), 256, 0, stream>>>(a);
    check(cudaGetLastError(), "positions");
}

/// See CacheArgs. The caller keeps within the capacity; what does not fit is left out.
template <class P>
void cache(const CacheArgs<P>& a, cudaStream_t stream) {
    each_row(a.rows, a.width, detail::cache_op<P>{a}, "cache", stream);
    if (a.rows.batch < 1) return;
    detail::count_rows_kernel<<<detail::blocks_of(a.rows.batch, 256), 256, 0, stream>>>(a.rows, a.capacity, a.count);
    check(cudaGetLastError(), "cache");
}

}  // namespace sdepth::inline v0::on_cuda
