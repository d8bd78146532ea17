// SPDX-License-Identifier: MIT
// Gradients of a run's routers at one version of some rows. Rank 5.
//
// One warp has 64 columns and a part of the rows; a block has eight warps of the same columns. Within a warp four lanes
// share eight columns and take every fourth layer each.
//  1. The routers' columns wait in shared memory, and each warp's sums beside them.
//  2. Row by row: g_ij w_j, added up over the four lanes, goes to grad_x_i; g_ij x_i to the sums.
//  3. The block adds up its warps' sums in order and adds them to its part of `sums`, which no other block touches.
// Bound by latency: a row has few layers to look at, so many rows are on their way at a time.
#pragma once

#include <algorithm>
#include <cstddef>

#include "sdepth/kernels/cuda/reduce.cuh"
#include "sdepth/ops/route.hpp"

namespace sdepth::inline v0::on_cuda {

/// Parts of the sums; blocks that have the same columns.
inline constexpr int route_parts = 16;

namespace detail {

inline constexpr int version_columns = 64, version_warps = 8;

/// Layers whose sums fit the shared memory of a block; longer runs are taken in pieces.
inline constexpr int version_layers = 88;

template <class P>
struct version_piece {
    RouteVersionBackwardArgs<P> a;
    int from, until;  // layers of this piece
};

template <bool whole, class P>
__global__ void __launch_bounds__(version_warps * 32, 1) route_version_kernel(const version_piece<P> piece) {
    const RouteVersionBackwardArgs<P>& a = piece.a;
    extern __shared__ __align__(1024) unsigned char raw[];
    const int layers = piece.until - piece.from, warp = static_cast<int>(threadIdx.x / 32);
    const int lane = static_cast<int>(threadIdx.x % 32), share = lane % 4, own = lane / 4 * 8;
    const int column = static_cast<int>(blockIdx.x) * version_columns;
    float* const weights = reinterpret_cast<float*>(raw);        // [layers][64]
    float* const all_sums = weights + layers * version_columns;  // [warps][layers][64]
    float* const sums = all_sums + warp * layers * version_columns;
    for (int i = static_cast<int>(threadIdx.x); i < layers * version_columns; i += version_warps * 32) {  // 1
        const int c = column + i % version_columns;
        weights[i] = c < a.width ? to_float(a.weight[(piece.from + i / version_columns) * a.stride + c]) : 0.f;
    }
    for (int i = lane; i < layers * version_columns; i += 32) sums[i] = 0;
    __syncthreads();

    const long long all = static_cast<long long>(a.rows.batch) * a.sequence;
    const int workers = route_parts * version_warps, worker = static_cast<int>(blockIdx.y) * version_warps + warp;
    const int left = a.width - column - own;
    const auto at_of = [&](long long row) -> long long {  // -1: a dead row
        if (row >= a.rows.capacity()) return -1;
        const row_place place(a.rows, row);
        if (!place.live(a.rows)) return -1;
        return static_cast<long long>(place.sequence) * a.sequence + (a.ids == nullptr ? place.index : a.ids[row]);
    };
    for (long long begin = worker; begin < a.rows.capacity(); begin += 32LL * workers) {  // 2
        // Each lane looks up one of the next 32 rows.
        const long long mine = at_of(begin + static_cast<long long>(lane) * workers);
        const int my_last = mine < 0 ? -1 : min(a.layers - 1 - a.later[mine], piece.until - 1);
#pragma unroll 2
        for (int r = 0; r < 32; ++r) {
            const long long at = __shfl_sync(~0u, mine, r);
            const int last = __shfl_sync(~0u, my_last, r);
            if (last < max(a.first, piece.from)) continue;  // the same in the whole warp
            const bool here = left > 0;
            const auto x =
                here ? load_eight<whole>(a.x + at * a.width + column + own, left) : eight<typename P::activation>{};
            const auto old = here ? load_eight<whole>(a.grad_x + at * a.width + column + own, left)
                                  : eight<typename P::activation>{};
            float to_x[8] = {};
            for (int j = max(a.first, piece.from) + share; j <= last; j += 4) {
                const float g = a.grad_logits[j * all + at];
                const float* const w = weights + (j - piece.from) * version_columns + own;
                float* const s = sums + (j - piece.from) * version_columns + own;
#pragma unroll
                for (int e = 0; e < 8; ++e) to_x[e] += g * w[e];
#pragma unroll
                for (int e = 0; e < 8; ++e) s[e] += g * to_float(x.x[e]);
            }
#pragma unroll
            for (int e = 0; e < 8; ++e) {
                to_x[e] += __shfl_xor_sync(~0u, to_x[e], 1);
                to_x[e] += __shfl_xor_sync(~0u, to_x[e], 2);
                to_x[e] += to_float(old.x[e]);
            }
            if (share == 0 && here) store_eight<whole>(a.grad_x + at * a.width + column + own, to_x, left);
        }
    }
    __syncthreads();
    for (int i = static_cast<int>(threadIdx.x); i < layers * version_columns; i += version_warps * 32) {  // 3
        const int j = piece.from + i / version_columns, c = column + i % version_columns;
        if (j < a.first || c >= a.width) continue;
        float sum = 0;
        for (int w = 0; w < version_warps; ++w) sum += all_sums[w * layers * version_columns + i];
        float* const to = a.sums + (static_cast<long long>(blockIdx.y) * a.layers + j) * a.width + c;
        *to += sum;
    }
}

template <class P>
__global__ void __launch_bounds__(256) route_version_seen_kernel(const RouteVersionBackwardArgs<P> a) {
    const long long row = blockIdx.x * 256LL + threadIdx.x;
    if (row >= a.rows.capacity()) return;
    const row_place place(a.rows, row);
    if (place.live(a.rows))
        a.later[static_cast<long long>(place.sequence) * a.sequence + a.ids[row]] = a.layers - a.first;
}
template <class P>
__global__ void __launch_bounds__(256) route_version_end_kernel(const RouteVersionBackwardArgs<P> a) {
    const int i = static_cast<int>(blockIdx.x * 256 + threadIdx.x);
    if (i >= a.layers * a.width) return;
    float sum = 0;
    for (int part = 0; part < route_parts; ++part) sum += a.sums[static_cast<long long>(part) * a.layers * a.width + i];
    a.grad_weight[i / a.width * a.grad_stride + i % a.width] += sum;
}

}  // namespace detail

/// See RouteVersionBackwardArgs.
template <class P>
void route_version_backward(const RouteVersionBackwardArgs<P>& a, cudaStream_t stream) {
    detail::check_rows(a.rows, a.width, "route_version_backward");
    if (a.rows.capacity() < 1) return;
    const dim3 grid(detail::blocks_of(a.width, detail::version_columns), route_parts);
    for (int from = a.first / detail::version_layers * detail::version_layers; from < a.layers;
         from += detail::version_layers) {
        const detail::version_piece<P> piece{a, from, std::min(from + detail::version_layers, a.layers)};
        const auto kernel =
            a.width % 8 == 0 ? detail::route_version_kernel<true, P> : detail::route_version_kernel<false, P>;
        const std::size_t bytes = static_cast<std::size_t>(piece.until - from) * detail::version_columns *
                                  sizeof(float) * (detail::version_warps + 1);
        check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)),
              "route_version_backward");
        kernel<<<grid, detail::version_warps * 32, bytes, stream>>>(piece);
        check(cudaGetLastError(), "route_version_backward");
    }
    if (a.ids != nullptr)
        detail::route_version_seen_kernel<P><<<detail::blocks_of(a.rows.capacity(), 256), 256, 0, stream>>>(a);
    else
        detail::route_version_end_kernel<P><<<detail::blocks_of(a.layers * a.width, 256), 256, 0, stream>>>(a);
    check(cudaGetLastError(), "route_version_backward");
}

}  // namespace sdepth::inline v0::on_cuda
