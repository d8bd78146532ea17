// SPDX-License-Identifier: MIT
// Logits of a run's routers at one version of some rows, on the tensor cores. Rank 5.
//
// A block takes 16 rows and up to 24 layers; its eight warps share the columns.
//  1. x as it lies in memory: a thread's eight neighbouring columns are the places that it has of two products' inner
//     axis. The routers' fp32 numbers in the same places, as three bfloat16 numbers whose sum keeps all 24 bits.
//  2. Sums in registers, then over the warps in order: a row's logit does not depend on where the row lies.
// Bytes moved: x once, the routers from the L2 cache once a block.
#pragma once

#include "sdepth/kernels/cuda/each_row.cuh"
#include "sdepth/kernels/cuda/fragments.cuh"
#include "sdepth/ops/route.hpp"

namespace sdepth::inline v0::on_cuda {

namespace detail {

struct logits_tile {
    static constexpr int rows = 16, warps = 8, tiles = 3, layers = 8 * tiles;
};

// Two numbers as three pairs of bfloat16 that add up to them.
struct split_pair {
    std::uint32_t part[3];

    __device__ split_pair(float x, float y) {
#pragma unroll
        for (int i = 0; i < 3; ++i) {
            part[i] = pack_bf16(x, y);
            x -= __uint_as_float(part[i] << 16), y -= __uint_as_float(part[i] & 0xFFFF0000u);
        }
    }
};

template <bool whole, class P>
__global__ void __launch_bounds__(256) route_version_logits_kernel(const RouteVersionLogitsArgs<P> a) {
    wait_for_kernel_before();
    using tile = logits_tile;
    __shared__ float parts[tile::warps][tile::rows][tile::layers + 1];
    __shared__ long long places[tile::rows];
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
    const int from = a.first + static_cast<int>(blockIdx.y) * tile::layers;
    const int layers = min(a.layers - from, tile::layers);
    const auto place_of = [&](int r) -> long long {  // row of x; -1: there is none
        const long long row = static_cast<long long>(blockIdx.x) * tile::rows + r;
        if (row >= a.rows.capacity()) return -1;
        const row_place place(a.rows, row);
        if (!place.live(a.rows)) return -1;
        return static_cast<long long>(place.sequence) * a.sequence + (a.ids == nullptr ? place.index : a.ids[row]);
    };
    if (thread < tile::rows) places[thread] = place_of(thread);
    __syncthreads();

    const int own_row = lane / 4, own_column = lane % 4 * 8;
    const long long at[2] = {places[own_row], places[own_row + 8]};
    float sums[tile::tiles][4] = {};
    for (int column = 32 * warp + own_column; column - own_column < a.width; column += 32 * tile::warps) {
        const int left = a.width - column;
        eight<typename P::activation> x[2] = {};  // 1
        eight<typename P::master> w[tile::tiles] = {};
#pragma unroll
        for (int r = 0; r < 2; ++r)
            if (at[r] >= 0 && left > 0) x[r] = load_eight<whole>(a.x + at[r] * a.width + column, left);
#pragma unroll
        for (int t = 0; t < tile::tiles; ++t)
            if (8 * t + own_row < layers && left > 0)
                w[t] = load_eight<whole>(a.weight + (from + 8 * t + own_row) * a.stride + column, left);
        const std::uint32_t* const low = reinterpret_cast<const std::uint32_t*>(&x[0]);
        const std::uint32_t* const high = reinterpret_cast<const std::uint32_t*>(&x[1]);
#pragma unroll
        for (int t = 0; t < tile::tiles; ++t) {
            if (8 * t >= layers) continue;
#pragma unroll
            for (int half = 0; half < 2; ++half) {
                const std::uint32_t rows[4] = {low[2 * half], high[2 * half], low[2 * half + 1], high[2 * half + 1]};
                const auto& y = w[t].x;
                const split_pair first(y[4 * half], y[4 * half + 1]), second(y[4 * half + 2], y[4 * half + 3]);
#pragma unroll
                for (int i = 0; i < 3; ++i) multiply_16x8x16(sums[t], rows, first.part[i], second.part[i]);
            }
        }
    }
#pragma unroll
    for (int t = 0; t < tile::tiles; ++t)  // 2
#pragma unroll
        for (int e = 0; e < 4; ++e) parts[warp][own_row + e / 2 * 8][8 * t + lane % 4 * 2 + e % 2] = sums[t][e];
    __syncthreads();
    for (int i = thread; i < tile::rows * layers; i += 256) {
        const int r = i % tile::rows, j = i / tile::rows;
        if (places[r] < 0) continue;
        float sum = 0;
#pragma unroll
        for (int part = 0; part < tile::warps; ++part) sum += parts[part][r][j];
        a.logits[(from + j) * a.logits_stride + places[r]] = sum;
    }
}

}  // namespace detail

/// See RouteVersionLogitsArgs.
template <class P>
void route_version_logits(const RouteVersionLogitsArgs<P>& a, cudaStream_t stream) {
    detail::check_rows(a.rows, a.width, "route_version_logits");
    if (a.rows.capacity() < 1 || a.first >= a.layers) return;
    using tile = detail::logits_tile;
    const dim3 grid(detail::blocks_of(a.rows.capacity(), tile::rows),
                    detail::blocks_of(a.layers - a.first, tile::layers));
    launch_early(
        a.width % 8 == 0 ? detail::route_version_logits_kernel<true, P> : detail::route_version_logits_kernel<false, P>,
        grid, 256, 0, stream, "route_version_logits", a);
}

}  // namespace sdepth::inline v0::on_cuda
