// SPDX-License-Identifier: MIT
// Attention forward and backward with sm_80 instructions (cp.async, ldmatrix, mma.sync), for every architecture from
// there on: correct everywhere, deterministic, same visibility as the Hopper kernels. Rank 5.
//
// After FlashAttention-2. A warp owns rows, of queries (forward 32, grad_q 16) or of keys (grad_k, grad_v, 16); the
// warps share tiles of the other side, two of which are in shared memory: one at work, one on its way.
//
//  1. Copy the block's own rows; rows that are dead or past the end become zeros.
//  2. Walk the tiles of the other side that some row sees.
//  3. S = q k^T (or its transpose), mask where the block needs it, P = exp2(c S - c maximum) or, backward, from lse.
//  4. Forward: o += P v. Backward: dP, dS = P (dP - D), then grad_q += dS k or grad_v += P^T grad_o, grad_k += dS^T q.
//  5. Scale, round, store.
//
// The backward computes S and dP twice, once for each side: seven products instead of five, and no sums across blocks.
#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>

#include "sdepth/kernels/cuda/attention_backward_ends.cuh"
#include "sdepth/kernels/cuda/attention_tiles.cuh"
#include "sdepth/kernels/cuda/error.cuh"
#include "sdepth/kernels/cuda/fragments.cuh"
#include "sdepth/ops/attention.hpp"

namespace sdepth::inline v0::on_cuda {

/// Tile of the backward kernels; members as attention_backward_ends.cuh needs them.
template <int head_dim>
struct portable_tile {
    static constexpr int dim = head_dim, own = 128, other = 64, threads = 256;
    static constexpr int columns =
        dim == 64 ? 8 : 4;  // of S in units of eight: what the backward's registers hold at a time
    static constexpr int query_block = other, key_block = own;  // of the kernel for grad_k and grad_v
    static constexpr int own_bytes = own * dim * 2, other_bytes = other * dim * 2;

    // own x other -> sums; `moving` are the two tiles that change.
    struct shared {
        unsigned char own[2][own_bytes];          // [own][dim], 16-byte columns swizzled by the row
        unsigned char moving[2][2][other_bytes];  // [stage][which][other][dim]
        float row_data[2][2][other];              // [stage]: log-sum-exp in base 2, D
    };
};

/// Tile of the forward kernel. At head size 64 a warp owns 32 rows, so that each piece of k and v that it loads serves
/// two products; at 128 registers allow 16.
template <int head_dim>
struct portable_forward_tile {
    static constexpr int dim = head_dim, warp_rows = dim == 64 ? 32 : 16, threads = dim == 64 ? 128 : 256;
    static constexpr int blocks = dim == 64 ? 2 : 1;
    static constexpr int own = threads / 32 * warp_rows, other = 64;
    static constexpr int own_bytes = own * dim * 2, other_bytes = other * dim * 2;
    struct shared {
        unsigned char own[own_bytes];             // [own][dim], swizzled
        unsigned char moving[2][2][other_bytes];  // [stage][k, v][other][dim]
    };
};

/// Rows row .. row + n - 1 of one head into a tile, zeros from `live` on.
template <int D, int threads = 256>
__device__ inline void copy_rows(unsigned char* tile, int n, const __nv_bfloat16* head, int stride, int row, int live) {
    for (int i = threads == 128 ? this_thread() : static_cast<int>(threadIdx.x); i < n * (D / 8); i += threads) {
        const int r = i / (D / 8), c = i % (D / 8);
        const bool there = row + r < live;
        copy_16(tile + r * D * 2 + (c ^ r % 8) * 16,
                head + (there ? static_cast<std::int64_t>(row + r) * stride + c * 8 : 0), there);
    }
}
/// Operand A, rows `row` .. + 15 and columns 16 kk .. + 15 of a tile; transposed it is operand B of two column blocks,
/// k along the rows.
template <int D>
__device__ inline const unsigned char* piece_a(const unsigned char* tile, int lane, int row, int kk) {
    const int r = row + lane % 16, c = 2 * kk + lane / 16;
    return tile + r * D * 2 + (c ^ r % 8) * 16;
}
/// Operand B of two column blocks, whose columns are rows `row` .. + 15 of a tile, k = 16 kk .. + 15.
template <int D>
__device__ inline const unsigned char* piece_b(const unsigned char* tile, int lane, int row, int kk) {
    const int r = row + lane / 16 * 8 + lane % 8, c = 2 * kk + lane / 8 % 2;
    return tile + r * D * 2 + (c ^ r % 8) * 16;
}

/// s = 16 H own rows from `row` on times 8 J rows of `other` from `from` on, over the head's columns.
template <int D, int J, int H>
__device__ inline void product_of_rows(float (&s)[H][J][4], const unsigned char* own, int row,
                                       const unsigned char* other, int from = 0) {
    const int lane = (H == 1 ? static_cast<int>(threadIdx.x) : this_thread()) % 32;
#pragma unroll
    for (int i = 0; i < H * J * 4; ++i) s[i / (J * 4)][i / 4 % J][i % 4] = 0;
#pragma unroll(H == 1 ? D / 16 : 2)  // two sets of rows leave no registers for more
    for (int kk = 0; kk < D / 16; ++kk) {
        std::uint32_t a[H][4];
#pragma unroll
        for (int h = 0; h < H; ++h) load_matrices(a[h], piece_a<D>(own, lane, row + 16 * h, kk));
#pragma unroll
        for (int j = 0; j < J / 2; ++j) {
            std::uint32_t b[4];
            load_matrices(b, piece_b<D>(other, lane, from + 16 * j, kk));
#pragma unroll
            for (int h = 0; h < H; ++h) {
                multiply_16x8x16(s[h][2 * j], a[h], b[0], b[1]);
                multiply_16x8x16(s[h][2 * j + 1], a[h], b[2], b[3]);
            }
        }
    }
}
/// sum += w times 16 K rows of `other` from `from` on, w in bf16 as operand A: 16 H rows, k along the rows of `other`.
template <int D, int K, int H>
__device__ inline void add_weighted_rows(float (&sum)[H][D / 8][4], const std::uint32_t (&w)[H][K][4],
                                         const unsigned char* other, int from = 0) {
    const int lane = (H == 1 ? static_cast<int>(threadIdx.x) : this_thread()) % 32;
#pragma unroll
    for (int kk = 0; kk < K; ++kk)
#pragma unroll
        for (int i = 0; i < D / 16; ++i) {
            std::uint32_t b[4];
            load_matrices_transposed(b, piece_a<D>(other, lane, from + 16 * kk, i));
#pragma unroll
            for (int h = 0; h < H; ++h) {
                multiply_16x8x16(sum[h][2 * i], w[h][kk], b[0], b[1]);
                multiply_16x8x16(sum[h][2 * i + 1], w[h][kk], b[2], b[3]);
            }
        }
}
template <int K, int H>
__device__ inline void round_weights(std::uint32_t (&w)[H][K][4], const float (&s)[H][2 * K][4]) {
#pragma unroll
    for (int h = 0; h < H; ++h)
#pragma unroll
        for (int j = 0; j < 2 * K; ++j) {
            w[h][j / 2][j % 2 * 2] = pack_bf16(s[h][j][0], s[h][j][1]);
            w[h][j / 2][j % 2 * 2 + 1] = pack_bf16(s[h][j][2], s[h][j][3]);
        }
}
/// Stores a warp's sixteen rows of sums, this thread's two rows times `scale`, where row < end.
template <int D>
__device__ inline void store_rows(__nv_bfloat16* head, int stride, int row, int end, const float (&sum)[D / 8][4],
                                  float top_scale, float bottom_scale) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int own = row + lane / 4 + 8 * r;
        const float scale = r == 0 ? top_scale : bottom_scale;
        if (own >= end) continue;
        __nv_bfloat16* const to = head + static_cast<std::int64_t>(own) * stride + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < D / 8; ++i)  // a scale of zero also hides NaN
            *reinterpret_cast<std::uint32_t*>(to + 8 * i) =
                scale == 0 ? 0u : pack_bf16(sum[i][2 * r] * scale, sum[i][2 * r + 1] * scale);
    }
}

/// Forward: a block of threads owns 128 query rows of a head, the longest first.
template <class Tile>
__global__ void __launch_bounds__(Tile::threads, Tile::blocks)
    attention_forward_portable_kernel(const attention_view a, const __nv_bfloat16* q, const __nv_bfloat16* k,
                                      const __nv_bfloat16* v, int q_stride, int kv_stride, __nv_bfloat16* o,
                                      float* lse) {
    constexpr int D = Tile::dim, BM = Tile::own, BN = Tile::other, R = Tile::warp_rows, H = R / 16, J = BN / 8;
    extern __shared__ __align__(1024) unsigned char raw[];
    auto& sm = *reinterpret_cast<typename Tile::shared*>(raw);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * BM, head = static_cast<int>(blockIdx.y);
    const int b = static_cast<int>(blockIdx.z), kv_head = head / (a.heads / a.kv_heads);
    const int live_keys = a.keys.of(b);
    const block_range see = blocks_of<BM, BN>(a, b, row, a.queries.of(b), live_keys);
    // What this thread's row h, r sees: rows 16 h + 8 r below its first.
    const auto sees = [&](int h, int r) {
        return a.visible(b, row + this_thread() / 32 * R + lane / 4 + 16 * h + 8 * r, a.queries.of(b), a.keys.of(b));
    };
    const std::int64_t at_kv = static_cast<std::int64_t>(b) * a.keys.capacity * kv_stride + kv_head * D;
    const float c = a.scale * 1.4426950408889634f;

    // 1, 2. Own rows and the first tiles.
    const auto copy_tiles = [&](int n) {
        if (n < see.end) {
            copy_rows<D, Tile::threads>(sm.moving[n % 2][0], BN, k + at_kv, kv_stride, n * BN, live_keys);
            copy_rows<D, Tile::threads>(sm.moving[n % 2][1], BN, v + at_kv, kv_stride, n * BN, live_keys);
        }
        commit_copies();
    };
    copy_rows<D, Tile::threads>(sm.own, BM, q + static_cast<std::int64_t>(b) * a.queries.capacity * q_stride + head * D,
                                q_stride, row, a.queries.of(b));
    copy_tiles(see.begin);

    float sum[H][D / 8][4] = {}, m[H][2], total[H][2] = {};
#pragma unroll
    for (int i = 0; i < 2 * H; ++i) m[i / 2][i % 2] = -INFINITY;
    for (int n = see.begin; n < see.end; ++n) {
        copy_tiles(n + 1);
        wait_copies<1>();
        __syncthreads();
        // 3. Softmax.
        float s[H][J][4];
        product_of_rows<D, J, H>(s, sm.own, warp * R, sm.moving[n % 2][0]);
        if (!see.full(n)) {
#pragma unroll
            for (int h = 0; h < H; ++h)
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    const key_range range = sees(h, r);
#pragma unroll
                    for (int i = 0; i < 2 * J; ++i) {
                        const int j = n * BN + i / 2 * 8 + lane % 4 * 2 + i % 2;
                        if (j < range.first || j > range.last) s[h][i / 2][2 * r + i % 2] = -INFINITY;
                    }
                }
        }
#pragma unroll
        for (int h = 0; h < H; ++h)
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                float top = m[h][r];
#pragma unroll
                for (int j = 0; j < J; ++j) top = fmaxf(top, fmaxf(s[h][j][2 * r], s[h][j][2 * r + 1]));
                top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
                top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
                const float shift = top == -INFINITY ? 0.f : top * c, factor = exp2_fast(m[h][r] * c - shift);
                m[h][r] = top, total[h][r] *= factor;
#pragma unroll
                for (int i = 0; i < 2 * J; ++i) {
                    float& x = s[h][i / 2][2 * r + i % 2];
                    x = exp2_fast(x * c - shift), total[h][r] += x;
                }
#pragma unroll
                for (int i = 0; i < D / 8; ++i) sum[h][i][2 * r] *= factor, sum[h][i][2 * r + 1] *= factor;
            }
        // 4. o.
        std::uint32_t p[H][J / 2][4];
        round_weights<J / 2, H>(p, s);
        add_weighted_rows<D, J / 2, H>(sum, p, sm.moving[n % 2][1]);
        __syncthreads();
    }

    // 5. Store.
#pragma unroll
    for (int h = 0; h < H; ++h) {
        float inverse[2];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float& t = total[h][r];
            t += __shfl_xor_sync(~0u, t, 1);
            t += __shfl_xor_sync(~0u, t, 2);
            const key_range range = sees(h, r);
            const bool blind = range.last < range.first;
            const int own = row + this_thread() / 32 * R + lane / 4 + 16 * h + 8 * r;
            inverse[r] = blind ? 0.f : 1.f / t;
            if (lane % 4 == 0 && own < a.queries.capacity)
                lse[(static_cast<std::int64_t>(b) * a.queries.capacity + own) * a.heads + head] =
                    blind ? -INFINITY : m[h][r] * a.scale + logf(t);
        }
        store_rows<D>(o + static_cast<std::int64_t>(b) * a.queries.capacity * a.heads * D + head * D, a.heads * D,
                      row + this_thread() / 32 * R + 16 * h, a.queries.capacity, sum[h], inverse[0], inverse[1]);
    }
}

/// Backward for queries: a block of threads owns 128 query rows of a head.
template <class Tile>
__global__ void __launch_bounds__(Tile::threads, 1)
    attention_grad_q_portable_kernel(const attention_view a, const __nv_bfloat16* q, const __nv_bfloat16* k,
                                     const __nv_bfloat16* v, int q_stride, int kv_stride, const __nv_bfloat16* grad_o,
                                     const backward_scratch scratch, __nv_bfloat16* grad_q) {
    constexpr int D = Tile::dim, BM = Tile::own, BN = Tile::other, J = Tile::columns;
    extern __shared__ __align__(1024) unsigned char raw[];
    auto& sm = *reinterpret_cast<typename Tile::shared*>(raw);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * BM, head = static_cast<int>(blockIdx.y);
    const int b = static_cast<int>(blockIdx.z), kv_head = head / (a.heads / a.kv_heads);
    const int live_queries = a.queries.of(b), live_keys = a.keys.of(b), own = row + warp * 16 + lane / 4;
    const block_range see = blocks_of<BM, BN>(a, b, row, live_queries, live_keys);
    const std::int64_t at_kv = static_cast<std::int64_t>(b) * a.keys.capacity * kv_stride + kv_head * D;
    const std::int64_t at_q = static_cast<std::int64_t>(b) * a.queries.capacity * q_stride + head * D;
    const float c = a.scale * 1.4426950408889634f;

    const auto copy_tiles = [&](int n) {
        if (n < see.end) {
            copy_rows<D>(sm.moving[n % 2][0], BN, k + at_kv, kv_stride, n * BN, live_keys);
            copy_rows<D>(sm.moving[n % 2][1], BN, v + at_kv, kv_stride, n * BN, live_keys);
        }
        commit_copies();
    };
    copy_rows<D>(sm.own[0], BM, q + at_q, q_stride, row, live_queries);
    copy_rows<D>(sm.own[1], BM, grad_o + static_cast<std::int64_t>(b) * a.queries.capacity * a.heads * D + head * D,
                 a.heads * D, row, live_queries);
    copy_tiles(see.begin);

    float lse[2], drop[2], sum[1][D / 8][4] = {};
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int block = (own + 8 * r) / Tile::query_block, at = (own + 8 * r) % Tile::query_block;
        const bool there = block < scratch.query_blocks;
        const float* const data =
            scratch.row_data +
            ((static_cast<std::int64_t>(b) * a.heads + head) * scratch.query_blocks + block) * 2 * Tile::query_block;
        lse[r] = there ? data[at] : INFINITY, drop[r] = there ? data[Tile::query_block + at] : 0.f;
    }
    for (int n = see.begin; n < see.end; ++n) {
        copy_tiles(n + 1);
        wait_copies<1>();
        __syncthreads();
#pragma unroll 1
        for (int from = 0; from < BN; from += 8 * J) {
            float s[1][J][4], dp[1][J][4];
            product_of_rows<D, J, 1>(s, sm.own[0], warp * 16, sm.moving[n % 2][0], from);
            product_of_rows<D, J, 1>(dp, sm.own[1], warp * 16, sm.moving[n % 2][1], from);
            if (!see.full(n)) {
                const key_range sees[2] = {a.visible(b, own, a.queries.of(b), a.keys.of(b)),
                                           a.visible(b, own + 8, a.queries.of(b), a.keys.of(b))};
#pragma unroll
                for (int i = 0; i < 4 * J; ++i) {
                    const int j = n * BN + from + i / 4 * 8 + lane % 4 * 2 + i % 2, r = i / 2 % 2;
                    if (j < sees[r].first || j > sees[r].last) s[0][i / 4][i % 4] = -INFINITY;
                }
            }
#pragma unroll
            for (int i = 0; i < 4 * J; ++i) {
                const int r = i / 2 % 2;
                s[0][i / 4][i % 4] = exp2_fast(s[0][i / 4][i % 4] * c - lse[r]) * (dp[0][i / 4][i % 4] - drop[r]);
            }
            std::uint32_t ds[1][J / 2][4];
            round_weights<J / 2, 1>(ds, s);
            add_weighted_rows<D, J / 2, 1>(sum, ds, sm.moving[n % 2][0], from);
        }
        __syncthreads();
    }
    store_rows<D>(grad_q + at_q, q_stride, row + warp * 16, a.queries.capacity, sum[0], a.scale, a.scale);
}

/// Backward for keys and values: a block of threads owns 128 key rows of a KV head, the longest first (causal).
template <class Tile>
__global__ void __launch_bounds__(Tile::threads, 1)
    attention_grad_kv_portable_kernel(const attention_view a, const __nv_bfloat16* q, const __nv_bfloat16* k,
                                      const __nv_bfloat16* v, int q_stride, int kv_stride, const __nv_bfloat16* grad_o,
                                      const backward_scratch scratch, __nv_bfloat16* grad_k, __nv_bfloat16* grad_v) {
    constexpr int D = Tile::dim, BM = Tile::other, BN = Tile::own, J = Tile::columns;
    extern __shared__ __align__(1024) unsigned char raw[];
    auto& sm = *reinterpret_cast<typename Tile::shared*>(raw);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    const int n = static_cast<int>(blockIdx.x), kv_head = static_cast<int>(blockIdx.y),
              b = static_cast<int>(blockIdx.z);
    const int live_queries = a.queries.of(b), live_keys = a.keys.of(b), group = a.heads / a.kv_heads;
    const int key = n * BN + warp * 16 + lane / 4;  // this thread's rows of S^T: it and 8 below
    const std::int64_t at_kv = static_cast<std::int64_t>(b) * a.keys.capacity * kv_stride + kv_head * D;
    const int o_stride = a.heads * D;
    const float c = a.scale * 1.4426950408889634f;

    // Steps are counted head by head, block by block; the next one at or after `step` whose block sees these keys.
    const int steps = group * scratch.query_blocks;
    const auto next = [&](int step) {
        for (; step < steps; ++step) {
            const int4 see = scratch.sight[b * scratch.query_blocks + step % scratch.query_blocks];
            if (see.x <= n && n < see.y) break;
        }
        return step;
    };
    const auto copy_tiles = [&](int step, int stage) {
        if (step < steps) {
            const int head = kv_head * group + step / scratch.query_blocks, block = step % scratch.query_blocks;
            const std::int64_t at_b = static_cast<std::int64_t>(b) * a.queries.capacity;
            copy_rows<D>(sm.moving[stage][0], BM, q + at_b * q_stride + head * D, q_stride, block * BM, live_queries);
            copy_rows<D>(sm.moving[stage][1], BM, grad_o + at_b * o_stride + head * D, o_stride, block * BM,
                         live_queries);
            if (threadIdx.x < 2 * BM / 4)
                copy_16(&sm.row_data[stage][0][0] + threadIdx.x * 4,
                        scratch.row_data +
                            ((static_cast<std::int64_t>(b) * a.heads + head) * scratch.query_blocks + block) * 2 * BM +
                            threadIdx.x * 4,
                        true);
        }
        commit_copies();
    };
    copy_rows<D>(sm.own[0], BN, k + at_kv, kv_stride, n * BN, live_keys);
    copy_rows<D>(sm.own[1], BN, v + at_kv, kv_stride, n * BN, live_keys);
    int step = next(0), stage = 0;
    copy_tiles(step, 0);

    float sum_k[1][D / 8][4] = {}, sum_v[1][D / 8][4] = {};
    while (step < steps) {
        const int row = step % scratch.query_blocks * BM;
        const int4 see = scratch.sight[b * scratch.query_blocks + step % scratch.query_blocks];
        const bool full = see.z <= n && n < see.w;
        step = next(step + 1);
        copy_tiles(step, stage ^ 1);
        wait_copies<1>();
        __syncthreads();
#pragma unroll 1
        for (int from = 0; from < BM; from += 8 * J) {
            float s[1][J][4], dp[1][J][4];
            product_of_rows<D, J, 1>(s, sm.own[0], warp * 16, sm.moving[stage][0], from);
            if (!full) {
#pragma unroll
                for (int j = 0; j < J; ++j)
#pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        const key_range sees =
                            a.visible(b, row + from + 8 * j + lane % 4 * 2 + e, a.queries.of(b), a.keys.of(b));
                        if (key < sees.first || key > sees.last) s[0][j][e] = -INFINITY;
                        if (key + 8 < sees.first || key + 8 > sees.last) s[0][j][2 + e] = -INFINITY;
                    }
            }
#pragma unroll
            for (int j = 0; j < J; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    s[0][j][e] = exp2_fast(s[0][j][e] * c - sm.row_data[stage][0][from + 8 * j + lane % 4 * 2 + e % 2]);
            std::uint32_t w[1][J / 2][4];
            round_weights<J / 2, 1>(w, s);
            add_weighted_rows<D, J / 2, 1>(sum_v, w, sm.moving[stage][1], from);
            product_of_rows<D, J, 1>(dp, sm.own[1], warp * 16, sm.moving[stage][1], from);
#pragma unroll
            for (int j = 0; j < J; ++j)
#pragma unroll
                for (int e = 0; e < 4; ++e)
                    s[0][j][e] *= dp[0][j][e] - sm.row_data[stage][1][from + 8 * j + lane % 4 * 2 + e % 2];
            round_weights<J / 2, 1>(w, s);
            add_weighted_rows<D, J / 2, 1>(sum_k, w, sm.moving[stage][0], from);
        }
        __syncthreads();
        stage ^= 1;
    }
    wait_copies<0>();
    store_rows<D>(grad_k + at_kv, kv_stride, n * BN + warp * 16, a.keys.capacity, sum_k[0], a.scale, a.scale);
    store_rows<D>(grad_v + at_kv, kv_stride, n * BN + warp * 16, a.keys.capacity, sum_v[0], 1.f, 1.f);
}

/// Forward attention on one stream; needs no scratch.
template <class Tile>
void attention_forward_portable(const AttentionArgs<__nv_bfloat16>& a, cudaStream_t stream) {
    const int bytes = static_cast<int>(sizeof(typename Tile::shared));
    const dim3 grid(static_cast<unsigned>((a.queries.capacity + Tile::own - 1) / Tile::own),
                    static_cast<unsigned>(a.heads), static_cast<unsigned>(a.batch));
    check(cudaFuncSetAttribute(attention_forward_portable_kernel<Tile>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               bytes),
          "attention_forward");
    attention_forward_portable_kernel<Tile><<<grid, Tile::threads, bytes, stream>>>(
        attention_view(a), a.q, a.k, a.v, a.q_stride(), a.kv_stride(), a.o, a.lse);
    check(cudaGetLastError(), "attention_forward");
}

/// Backward attention on one stream; `scratch` has backward_layout bytes without sums.
template <class Tile>
void attention_backward_portable(const AttentionBackwardArgs<__nv_bfloat16>& g, void* scratch, cudaStream_t stream) {
    const AttentionArgs<__nv_bfloat16>& a = g.forward;
    backward_scratch s{};
    backward_layout<Tile, false>(a, scratch, s);
    const attention_view view(a);
    const auto B = static_cast<unsigned>(a.batch), H = static_cast<unsigned>(a.heads);
    attention_prepare_kernel<Tile><<<dim3(static_cast<unsigned>(s.query_blocks), (H + 3) / 4, B), 256, 0, stream>>>(
        view, a.o, g.grad_o, a.lse, s);
    check(cudaGetLastError(), "attention_backward");

    const int bytes = static_cast<int>(sizeof(typename Tile::shared));
    check(cudaFuncSetAttribute(attention_grad_kv_portable_kernel<Tile>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               bytes),
          "attention_backward");
    attention_grad_kv_portable_kernel<Tile><<<dim3(static_cast<unsigned>((a.keys.capacity + Tile::own - 1) / Tile::own),
                                                   static_cast<unsigned>(a.kv_heads), B),
                                              Tile::threads, bytes, stream>>>(
        view, a.q, a.k, a.v, a.q_stride(), a.kv_stride(), g.grad_o, s, g.grad_k, g.grad_v);
    check(cudaGetLastError(), "attention_backward");

    check(cudaFuncSetAttribute(attention_grad_q_portable_kernel<Tile>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               bytes),
          "attention_backward");
    attention_grad_q_portable_kernel<Tile>
        <<<dim3(static_cast<unsigned>((a.queries.capacity + Tile::own - 1) / Tile::own), H, B), Tile::threads, bytes,
           stream>>>(view, a.q, a.k, a.v, a.q_stride(), a.kv_stride(), g.grad_o, s, g.grad_q);
    check(cudaGetLastError(), "attention_backward");
}

}  // namespace sdepth::inline v0::on_cuda
