// SPDX-License-Identifier: MIT
// Products of tiles in shared memory with sm_80 instructions, as the portable attention kernels use them. Rank 5.
//
// A tile is [rows][columns] in bf16; the 16-byte columns of row r are swizzled by r % 8. Addresses are kept to one
// register and small constants: a lane's place in a piece is a sum of the tile's address, the lane's own offset and
// constants, but for two bits that step 16 columns on, which are flipped.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "sdepth/kernels/cuda/fragments.cuh"

namespace sdepth::inline v0::on_cuda {

/// Tiles with C columns.
template <int C>
struct portable_tile {
    static constexpr int row_bytes = 2 * C;

    /// This lane's offset for operand A, 16 rows x 16 columns; loaded transposed it is operand B of two column blocks,
    /// 16 rows of it.
    __device__ static std::uint32_t down(int lane) {
        return static_cast<std::uint32_t>(lane % 16 * row_bytes + (lane / 16 ^ lane % 8) * 16);
    }
    /// For operand B of two column blocks whose columns are 16 rows of the tile; loaded transposed it is operand A.
    __device__ static std::uint32_t across(int lane) {
        return static_cast<std::uint32_t>((lane / 16 * 8 + lane % 8) * row_bytes + (lane / 8 % 2 ^ lane % 8) * 16);
    }
    /// `base` (a tile plus one of the two) moved to row `row` and column 16 step; row is a multiple of 8.
    __device__ static std::uint32_t at(std::uint32_t base, int row, int step) {
        return (base ^ static_cast<std::uint32_t>(step % 4 * 32)) +
               static_cast<std::uint32_t>(step / 4 * 128 + row * row_bytes);
    }
};

/// One thread's share of copying N rows of C numbers: the same column of every few rows.
template <int C, int N, int threads>
struct portable_copy {
    static constexpr int row_threads = C / 8, step = threads / row_threads;
    static_assert(step % 8 == 0 && N % step == 0);
    int thread;

    /// Rows from `head` on, `stride` apart; zeros from row `live` on.
    __device__ void operator()(std::uint32_t tile, const __nv_bfloat16* head, int stride, int live) const {
        const int r = thread / row_threads, c = thread % row_threads;
        const std::uint32_t to = tile + static_cast<std::uint32_t>(r * 2 * C + (c ^ r % 8) * 16);
        const __nv_bfloat16* const from = head + static_cast<std::int64_t>(r) * stride + c * 8;
        if (live >= N) {
#pragma unroll
            for (int i = 0; i < N / step; ++i)
                copy_16(to + i * step * 2 * C, from + static_cast<std::int64_t>(i * step) * stride);
        } else {
#pragma unroll 1
            for (int i = 0; i < N / step; ++i) {
                const bool there = r + i * step < live;
                copy_16(to + i * step * 2 * C, there ? from + static_cast<std::int64_t>(i * step) * stride : head,
                        there);
            }
        }
    }
};

/// s = 16 H rows from `a` on (down) times 8 J rows from `b` on (across), over C columns.
template <int C, int H, int J>
__device__ inline void product_of_rows(float (&s)[H][J][4], std::uint32_t a, std::uint32_t b) {
    using tile = portable_tile<C>;
#pragma unroll
    for (int i = 0; i < H * J * 4; ++i) s[i / (J * 4)][i / 4 % J][i % 4] = 0;
#pragma unroll
    for (int kk = 0; kk < C / 16; ++kk) {
        std::uint32_t x[H][4];
#pragma unroll
        for (int h = 0; h < H; ++h) load_matrices(x[h], tile::at(a, 16 * h, kk));
#pragma unroll
        for (int j = 0; j < J / 2; ++j) {
            std::uint32_t y[4];
            load_matrices(y, tile::at(b, 16 * j, kk));
#pragma unroll
            for (int h = 0; h < H; ++h) {
                multiply_16x8x16(s[h][2 * j], x[h], y[0], y[1]);
                multiply_16x8x16(s[h][2 * j + 1], x[h], y[2], y[3]);
            }
        }
    }
}
/// sum += w times 16 K rows from `b` on (down), w as operand A: 16 H rows.
template <int C, int H, int K>
__device__ inline void add_weighted_rows(float (&sum)[H][C / 8][4], const std::uint32_t (&w)[H][K][4],
                                         std::uint32_t b) {
#pragma unroll
    for (int kk = 0; kk < K; ++kk)
#pragma unroll
        for (int i = 0; i < C / 16; ++i) {
            std::uint32_t y[4];
            load_matrices_transposed(y, portable_tile<C>::at(b, 16 * kk, i));
#pragma unroll
            for (int h = 0; h < H; ++h) {
                multiply_16x8x16(sum[h][2 * i], w[h][kk], y[0], y[1]);
                multiply_16x8x16(sum[h][2 * i + 1], w[h][kk], y[2], y[3]);
            }
        }
}
/// Sums as operand A of a further product.
template <int H, int K>
__device__ inline void round_weights(std::uint32_t (&w)[H][K][4], const float (&s)[H][2 * K][4]) {
#pragma unroll
    for (int h = 0; h < H; ++h)
#pragma unroll
        for (int j = 0; j < 2 * K; ++j) {
            w[h][j / 2][j % 2 * 2] = pack_bf16(s[h][j][0], s[h][j][1]);
            w[h][j / 2][j % 2 * 2 + 1] = pack_bf16(s[h][j][2], s[h][j][3]);
        }
}
/// Stores a warp's sixteen rows of sums, this thread's two rows times a scale each, where row < end.
template <int C>
__device__ inline void store_rows(__nv_bfloat16* head, int stride, int row, int end, const float (&sum)[C / 8][4],
                                  float top_scale, float bottom_scale) {
    const int lane = this_thread() % 32;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int own = row + lane / 4 + 8 * r;
        const float scale = r == 0 ? top_scale : bottom_scale;
        if (own >= end) continue;
        __nv_bfloat16* const to = head + static_cast<std::int64_t>(own) * stride + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < C / 8; ++i)  // a scale of zero also hides NaN
            *reinterpret_cast<std::uint32_t*>(to + 8 * i) =
                scale == 0 ? 0u : pack_bf16(sum[i][2 * r] * scale, sum[i][2 * r + 1] * scale);
    }
}

}  // namespace sdepth::inline v0::on_cuda
