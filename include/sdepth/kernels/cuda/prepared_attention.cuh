// SPDX-License-Identifier: MIT
// Attention backward through the preparation of its queries: rotary phases and the norm of each head are turned back
// where grad_q is rounded, so that grad_q itself is never written. Bound by memory. Rank 5.
//
// A block of threads has 64 query rows and a few heads, a warp sixteen of the rows.
//
//  1. Angles of a thread's pairs, for all its heads; kept in shared memory, as registers are scarce. The kernel starts
//     early and waits for the one before it after this step.
//  2. Eight neighbouring columns of grad_q at a time, in bf16.
//  3. Rotation by the negative angle: columns c and c + h / 2 belong to one thread.
//  4. Norm: the row's sum over the four threads that share it; the weight's gradient stays in registers.
//  5. The weight's gradient of the block, to be summed by add_columns in a fixed order.
#pragma once

#include <cuda_bf16.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "sdepth/carve.hpp"
#include "sdepth/kernels/cuda/attention.cuh"
#include "sdepth/kernels/cuda/attention_backward_ends.cuh"
#include "sdepth/kernels/cuda/attention_tiles.cuh"
#include "sdepth/kernels/cuda/deferred_sums.cuh"
#include "sdepth/kernels/cuda/error.cuh"
#include "sdepth/kernels/cuda/launch.cuh"
#include "sdepth/kernels/cuda/rotary.cuh"
#include "sdepth/kernels/cuda/vector.cuh"
#include "sdepth/ops/attention.hpp"
#include "sdepth/ops/rotary.hpp"

namespace sdepth::inline v0::on_cuda {

namespace detail {

/// Blocks of threads of the last step, with `heads` each; every block leaves sums behind.
template <class Tile>
constexpr dim3 prepared_grid(const AttentionArgs<__nv_bfloat16>& a, int heads) {
    const int rows = (a.queries.capacity + Tile::query_block - 1) / Tile::query_block * (Tile::query_block / 64);
    return {static_cast<unsigned>(rows), static_cast<unsigned>((a.heads + heads - 1) / heads),
            static_cast<unsigned>(a.batch)};
}
constexpr int blocks_in(const dim3& grid) { return static_cast<int>(grid.x * grid.y * grid.z); }

inline constexpr int least_prepared_heads = 2, most_prepared_heads = 8;

/// Heads share the angles of their rows, but two blocks for each processor are to be left.
template <class Tile>
constexpr int prepared_heads(const AttentionArgs<__nv_bfloat16>& a) {
    return std::clamp(blocks_in(prepared_grid<Tile>(a, 1)) / 256, least_prepared_heads, most_prepared_heads);
}

}  // namespace detail

template <class Tile, class P>
__global__ void __launch_bounds__(128)
    prepared_finish_kernel(const attention_view a, const backward_scratch scratch, const QkPrepareBackwardArgs<P> g,
                           const rotary_speeds speeds, int heads, float* partial) {
    constexpr int D = Tile::dim, J = D / 64;  // a thread has 8 J pairs of a row
    const QkPrepareArgs<P>& f = g.forward;
    __shared__ double turns[D / 2];
    __shared__ __align__(16) float weights[D];
    __shared__ float4 phases[4][2][4 * J][32];  // [warp][row][pairs 2 p and 2 p + 1][lane]
    __shared__ float all[4][D];
    const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32, own = lane % 4 * 8;
    const int block = static_cast<int>(blockIdx.x) / (Tile::query_block / 64), b = static_cast<int>(blockIdx.z);
    const int rows = static_cast<int>(blockIdx.x) % (Tile::query_block / 64) * 4 + warp;  // in units of 16
    const int first = block * Tile::query_block + rows * 16 + lane / 4;                   // and the row eight below
    const bool norm = f.norm != qk_norm::none;
    if (thread < D / 2) turns[thread] = speeds.turns[thread];
    if (norm && thread < D) weights[thread] = to_float(f.weight[thread]);
    __syncthreads();
    const int live = f.rows.each.of(b);
    const auto row_of = [&](int r) { return f.rows.first(b) + first + 8 * r; };

    // 1. Pair 8 j + i: column 32 j + own + i and the one half a head further.
    for (int r = 0; r < 2 && f.rotary; ++r) {
        const int i = first + 8 * r;
        const int position = i >= live ? 0 : f.positions != nullptr ? f.positions[row_of(r)] : i;
#pragma unroll
        for (int p = 0; p < 4 * J; ++p) {
            const int c = p / 4 * 32 + own + p % 4 * 2;
            const float2 x = rotary_phase(turns[c], position), y = rotary_phase(turns[c + 1], position);
            phases[warp][r][p][lane] = float4{x.x, x.y, y.x, y.y};
        }
    }

    // Only from here on does it need what attention's kernel left.
    wait_for_kernel_before();
    const int4 see = scratch.sight[b * scratch.query_blocks + block];
    float sums[2 * J][8] = {};  // of the weight's gradient
    const int begin = static_cast<int>(blockIdx.y) * heads;
#pragma unroll 1
    for (int head = begin; head < min(begin + heads, a.heads); ++head) {
        const auto at = [&](int r) { return (row_of(r) * a.heads + head) * D + own; };
        eight<typename P::activation> x[2][2 * J] = {};
        float rstd[2] = {};
#pragma unroll
        for (int r = 0; r < 2; ++r)
            if (norm && first + 8 * r < live) {
                rstd[r] = f.rstd[row_of(r) * a.heads + head];
#pragma unroll
                for (int e = 0; e < 2 * J; ++e) x[r][e] = load_eight<true>(f.x + at(r) + e * 32, 8);
            }
        // 2.
        const long slot = (static_cast<long>(b) * a.heads + head) * scratch.query_blocks + block;
        uint4 grad[2 * J][2];
#pragma unroll
        for (int e = 0; e < 2 * J; ++e)
            rounded_sums<Tile>(grad[e], scratch.sums + slot * Tile::sum_count, rows, 4 * e, a.scale, see.x < see.y);
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            // 3.
            float y[2 * J][8];
#pragma unroll
            for (int j = 0; j < J; ++j)
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    const float low = to_float(reinterpret_cast<const __nv_bfloat16*>(&grad[j][r])[i]),
                                high = to_float(reinterpret_cast<const __nv_bfloat16*>(&grad[J + j][r])[i]);
                    float2 phase{1, 0};
                    if (f.rotary) phase = reinterpret_cast<const float2*>(&phases[warp][r][4 * j + i / 2][lane])[i % 2];
                    y[j][i] = low * phase.x + high * phase.y, y[J + j][i] = high * phase.x - low * phase.y;
                }
            // 4.
            if (norm) {
                float along = 0;
#pragma unroll
                for (int e = 0; e < 2 * J; ++e) {
                    const eight<float> w = load_eight<true>(weights + e * 32 + own, 8);
#pragma unroll
                    for (int i = 0; i < 8; ++i) {
                        const float v = to_float(x[r][e].x[i]);
                        sums[e][i] += y[e][i] * v * rstd[r];
                        y[e][i] *= w.x[i], along += y[e][i] * v;
                    }
                }
                along += __shfl_xor_sync(~0u, along, 1);
                along += __shfl_xor_sync(~0u, along, 2);
                along *= rstd[r] * rstd[r] / D;
#pragma unroll
                for (int e = 0; e < 2 * J; ++e)
#pragma unroll
                    for (int i = 0; i < 8; ++i) y[e][i] = rstd[r] * (y[e][i] - to_float(x[r][e].x[i]) * along);
            }
            if (first + 8 * r < a.queries.capacity)
#pragma unroll
                for (int e = 0; e < 2 * J; ++e) store_eight<true>(g.grad_x + at(r) + e * 32, y[e], 8);
        }
    }
    if (!norm) return;
#pragma unroll
    for (int e = 0; e < 2 * J; ++e)  // 5.
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            for (int step = 4; step < 32; step *= 2) sums[e][i] += __shfl_xor_sync(~0u, sums[e][i], step);
            if (lane < 4) all[warp][e * 32 + own + i] = sums[e][i];
        }
    __syncthreads();
    const long long id = (static_cast<long long>(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    if (thread < D) partial[id * D + thread] = all[0][thread] + all[1][thread] + all[2][thread] + all[3][thread];
}

/// Bytes of scratch for prepared_attention_backward of as many queries and keys as `a` has, or fewer
/// of both.
template <class Arch>
constexpr std::size_t prepared_attention_backward_scratch(const AttentionArgs<__nv_bfloat16>& a) {
    return detail::with_backward_tile<Arch>(a.head_dim, [&](auto tile) {
        using Tile = decltype(tile);
        const auto bytes = [](const AttentionArgs<__nv_bfloat16>& shape) {
            backward_scratch s{};
            const int most_blocks = detail::blocks_in(detail::prepared_grid<Tile>(shape, detail::least_prepared_heads));
            return backward_layout<Tile>(shape, nullptr, s) +
                   static_cast<std::size_t>(most_blocks) * Tile::dim * sizeof(float);
        };
        // Few rows can need more than many: see heads_apart.
        const int few = backward_round / (a.batch * a.kv_heads) * Tile::key_block;
        AttentionArgs<__nv_bfloat16> shorter = a;
        shorter.queries.capacity = std::min(a.queries.capacity, few);
        shorter.keys.capacity = std::min(a.keys.capacity, few);
        return std::max(bytes(a), bytes(shorter));
    });
}

/// attention_backward, then qk_prepare_backward of its queries: `queries.grad_y` is not written. The queries' rows are
/// packed, their norm is one of each head or none; throws sdepth::error otherwise, and where attention_backward does.
/// `scratch`: 256-byte aligned, any content.
template <class Arch, class P>
void prepared_attention_backward(const AttentionBackwardArgs<__nv_bfloat16>& g, const QkPrepareBackwardArgs<P>& queries,
                                 void* scratch, cudaStream_t stream, deferred_sums* later = nullptr) {
    const AttentionArgs<__nv_bfloat16>& a = g.forward;
    detail::check_backward(g, scratch, "attention_backward");
    detail::check_prepared(a, queries, "attention_backward");
    detail::with_backward_tile<Arch>(a.head_dim, [&](auto tile) {
        using Tile = decltype(tile);
        const backward_scratch s = detail::attention_backward_sums<Arch, Tile>(g, scratch, stream);
        backward_scratch unused{};
        block_sums sums(static_cast<std::byte*>(scratch) + backward_layout<Tile>(a, nullptr, unused), later);
        const int heads = detail::prepared_heads<Tile>(a);
        const dim3 grid = detail::prepared_grid<Tile>(a, heads);
        const int blocks = detail::blocks_in(grid);
        auto* const partial = sums.room<float>(static_cast<std::size_t>(blocks) * Tile::dim * sizeof(float), stream);
        launch_early(prepared_finish_kernel<Tile, P>, grid, 128, 0, stream, "attention_backward", attention_view(a), s,
                     queries, rotary_speeds(a.head_dim, queries.forward.base), heads, partial);
        if (queries.forward.norm == qk_norm::none) return;
        sums.add_columns(partial, blocks, a.head_dim, queries.grad_weight, "attention_backward", stream);
    });
}

}  // namespace sdepth::inline v0::on_cuda
