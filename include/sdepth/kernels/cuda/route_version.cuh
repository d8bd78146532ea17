// SPDX-License-Identifier: MIT
// Gradients of a run's routers at one version of some rows, on the tensor cores. Rank 5.
//
// A warp takes 16 rows and 64 columns at a time, a block has eight warps of the same columns.
//  1. g of the rows and all layers, zero where a layer reads another version, goes to shared memory as two bfloat16
//     numbers whose sum keeps 16 bits; x beside it. The routers' columns wait there as bfloat16.
//  2. grad_x += g w.
//  3. sums += g' x, in registers until the block's warps are added up in order at its end. A block adds to its own part
//     of `sums`.
// Bytes moved: x once, grad_x twice.
#pragma once

#include <algorithm>
#include <cstddef>

#include "sdepth/kernels/cuda/fragments.cuh"
#include "sdepth/kernels/cuda/reduce.cuh"
#include "sdepth/ops/route.hpp"

namespace sdepth::inline v0::on_cuda {

/// Parts of the sums; blocks that have the same columns.
inline constexpr int route_parts = 8;

namespace detail {

/// Layers of one pass; longer runs take several.
inline constexpr int version_layers = 48;

template <int tiles>  // of 16 layers
struct version_tile {
    static constexpr int columns = 64, rows = 16, warps = 8, layers = 16 * tiles;
    static constexpr int g_stride = layers + 8, w_stride = layers + 8, x_stride = columns + 8;  // no bank meets another

    struct warp {
        alignas(16) __nv_bfloat16 high[rows * g_stride], low[rows * g_stride];  // [row][layer]
        alignas(16) __nv_bfloat16 x[rows * x_stride];                           // [row][column]
    };
    struct shared {
        alignas(16) __nv_bfloat16 w[columns * w_stride];  // [column][layer]
        warp of[warps];
        float sums[warps][layers * columns];
    };
};

template <class P>
struct version_piece {
    RouteVersionBackwardArgs<P> a;
    int from, until;  // layers of this pass
};

template <int tiles, bool whole, class P>
__global__ void __launch_bounds__(256, 1) route_version_kernel(const version_piece<P> piece) {
    wait_for_kernel_before();
    using tile = version_tile<tiles>;
    const RouteVersionBackwardArgs<P>& a = piece.a;
    extern __shared__ __align__(1024) unsigned char raw[];
    auto& shared = *reinterpret_cast<typename tile::shared*>(raw);
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    auto& own = shared.of[warp];
    const int column = static_cast<int>(blockIdx.x) * tile::columns, first = max(a.first, piece.from);
    const int row_of = lane / 4, pair_of = lane % 4 * 2;                // of a fragment
    for (int i = thread; i < tile::columns * tile::layers; i += 256) {  // 1
        const int j = piece.from + i / tile::columns, c = i % tile::columns;
        const bool there = j < piece.until && column + c < a.width;
        shared.w[c * tile::w_stride + i / tile::columns] =
            __float2bfloat16_rn(there ? to_float(a.weight[j * a.stride + column + c]) : 0.f);
    }
    __syncthreads();

    const long long all = static_cast<long long>(a.rows.batch) * a.sequence;
    float sums[tiles][8][4] = {};
    const int step = route_parts * tile::warps * tile::rows;
    for (long long begin = (static_cast<int>(blockIdx.y) * tile::warps + warp) * tile::rows; begin < a.rows.capacity();
         begin += step) {
        // Lanes l and l + 16 look up row l.
        const long long row = begin + lane % 16;
        long long mine = -1;
        int last = -1;
        if (row < a.rows.capacity()) {
            const row_place place(a.rows, row);
            if (place.live(a.rows)) {
                mine =
                    static_cast<long long>(place.sequence) * a.sequence + (a.ids == nullptr ? place.index : a.ids[row]);
                last = min(a.layers - 1 - a.later[mine], piece.until - 1);
            }
        }
        if (__all_sync(~0u, last < first)) continue;
#pragma unroll 8
        for (int u = 0; u < tile::layers / 2; ++u) {
            const int at = 2 * u + lane / 16, j = piece.from + at;
            const float g = j >= first && j <= last ? static_cast<float>(a.grad_logits[j * all + mine]) : 0.f;
            const __nv_bfloat16 high = __float2bfloat16_rn(g);
            own.high[lane % 16 * tile::g_stride + at] = high;
            own.low[lane % 16 * tile::g_stride + at] = __float2bfloat16_rn(g - __bfloat162float(high));
        }
#pragma unroll
        for (int u = 0; u < 4; ++u) {
            const int r = u * 4 + lane / 8, c = lane % 8 * 8, left = a.width - column - c;
            const long long at = __shfl_sync(~0u, mine, r);
            eight<typename P::activation> x{};
            if (at >= 0 && left > 0) x = load_eight<whole>(a.x + at * a.width + column + c, left);
            *reinterpret_cast<uint4*>(own.x + r * tile::x_stride + c) = *reinterpret_cast<const uint4*>(&x);
        }
        // What grad_x has: one load after another would wait each for its store, for all the compiler knows.
        __nv_bfloat162 old[2][8];
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const long long at = __shfl_sync(~0u, mine, row_of + 8 * half);
#pragma unroll
            for (int n = 0; n < 8; ++n)
                if (whole && at >= 0 && column + pair_of + 8 * n < a.width)
                    old[half][n] =
                        *reinterpret_cast<const __nv_bfloat162*>(a.grad_x + at * a.width + column + pair_of + 8 * n);
        }
        __syncwarp();

        float to_x[8][4] = {};
#pragma unroll
        for (int t = 0; t < tiles; ++t) {
            if (piece.from + 16 * t + 15 < first) continue;
            // Rows l % 8 of the four 8 x 8 pieces of 16 rows x 16 layers.
            const int piece_row = lane % 8 + lane / 8 % 2 * 8, piece_column = lane / 16 * 8;
            std::uint32_t g[2][4], turned[2][4];
            load_matrices(g[0], own.high + piece_row * tile::g_stride + 16 * t + piece_column);
            load_matrices(g[1], own.low + piece_row * tile::g_stride + 16 * t + piece_column);
            // The same transposed: layers down, rows across.
            const int turned_row = lane % 8 + lane / 16 * 8, turned_column = lane / 8 % 2 * 8;
            load_matrices_transposed(turned[0], own.high + turned_row * tile::g_stride + 16 * t + turned_column);
            load_matrices_transposed(turned[1], own.low + turned_row * tile::g_stride + 16 * t + turned_column);
#pragma unroll
            for (int n = 0; n < 8; n += 2) {
                std::uint32_t w[4], x[4];  // top and bottom of columns 8 n ..., then of 8 (n + 1) ...
                load_matrices(
                    w, shared.w + (8 * n + lane % 8 + lane / 16 * 8) * tile::w_stride + 16 * t + lane / 8 % 2 * 8);
                load_matrices_transposed(x, own.x + piece_row * tile::x_stride + 8 * n + piece_column);
#pragma unroll
                for (int half = 0; half < 2; ++half) {
                    multiply_16x8x16(to_x[n], g[half], w[0], w[1]);  // 2
                    multiply_16x8x16(to_x[n + 1], g[half], w[2], w[3]);
                    multiply_16x8x16(sums[t][n], turned[half], x[0], x[1]);  // 3
                    multiply_16x8x16(sums[t][n + 1], turned[half], x[2], x[3]);
                }
            }
        }
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const long long at = __shfl_sync(~0u, mine, row_of + 8 * half);
            if (at < 0) continue;
            typename P::activation* const to = a.grad_x + at * a.width + column + pair_of;
#pragma unroll
            for (int n = 0; n < 8; ++n) {
                const int left = a.width - column - pair_of - 8 * n;
                if constexpr (whole) {
                    if (left <= 0) continue;
                    const float2 was = __bfloat1622float2(old[half][n]);
                    *reinterpret_cast<__nv_bfloat162*>(to + 8 * n) =
                        __floats2bfloat162_rn(was.x + to_x[n][2 * half], was.y + to_x[n][2 * half + 1]);
                } else {
                    for (int e = 0; e < 2; ++e)
                        if (e < left)
                            to[8 * n + e] =
                                from_float<typename P::activation>(to_float(to[8 * n + e]) + to_x[n][2 * half + e]);
                }
            }
        }
        __syncwarp();
    }
#pragma unroll
    for (int t = 0; t < tiles; ++t)
#pragma unroll
        for (int n = 0; n < 8; ++n)
#pragma unroll
            for (int half = 0; half < 2; ++half)
                *reinterpret_cast<float2*>(shared.sums[warp] + (16 * t + row_of + half * 8) * tile::columns + 8 * n +
                                           pair_of) = {sums[t][n][2 * half], sums[t][n][2 * half + 1]};
    __syncthreads();
    for (int i = thread; i < tile::layers * tile::columns; i += 256) {
        const int j = piece.from + i / tile::columns, c = column + i % tile::columns;
        if (j < first || j >= piece.until || c >= a.width) continue;
        float sum = 0;
#pragma unroll
        for (int w = 0; w < tile::warps; ++w) sum += shared.sums[w][i];
        a.sums[(static_cast<long long>(blockIdx.y) * a.layers + j) * a.width + c] += sum;
    }
}

template <int tiles, class P>
void route_version_pass(const version_piece<P>& piece, cudaStream_t stream) {
    constexpr auto bytes = static_cast<int>(sizeof(typename version_tile<tiles>::shared));
    const auto kernel =
        piece.a.width % 8 == 0 ? route_version_kernel<tiles, true, P> : route_version_kernel<tiles, false, P>;
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes), "route_version_backward");
    launch_early(kernel, dim3(blocks_of(piece.a.width, version_tile<tiles>::columns), route_parts), 256, bytes, stream,
                 "route_version_backward", piece);
}

template <class P>
__global__ void __launch_bounds__(256) route_version_seen_kernel(const RouteVersionBackwardArgs<P> a) {
    wait_for_kernel_before();
    const long long row = blockIdx.x * 256LL + threadIdx.x;
    if (row >= a.rows.capacity()) return;
    const row_place place(a.rows, row);
    if (place.live(a.rows))
        a.later[static_cast<long long>(place.sequence) * a.sequence + a.ids[row]] = a.layers - a.first;
}
template <class P>
__global__ void __launch_bounds__(256) route_version_end_kernel(const RouteVersionBackwardArgs<P> a) {
    wait_for_kernel_before();
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
    for (int from = a.first / detail::version_layers * detail::version_layers; from < a.layers;
         from += detail::version_layers) {
        const detail::version_piece<P> piece{a, from, std::min(from + detail::version_layers, a.layers)};
        const int layers = piece.until - from;
        if (layers <= 16)
            detail::route_version_pass<1>(piece, stream);
        else if (layers <= 32)
            detail::route_version_pass<2>(piece, stream);
        else
            detail::route_version_pass<3>(piece, stream);
    }
    if (a.ids != nullptr)
        launch_early(detail::route_version_seen_kernel<P>, detail::blocks_of(a.rows.capacity(), 256), 256, 0, stream,
                     "route_version_backward", a);
    else
        launch_early(detail::route_version_end_kernel<P>, detail::blocks_of(a.layers * a.width, 256), 256, 0, stream,
                     "route_version_backward", a);
}

}  // namespace sdepth::inline v0::on_cuda
