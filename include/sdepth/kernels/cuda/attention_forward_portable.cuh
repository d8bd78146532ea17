// SPDX-License-Identifier: MIT
// Attention forward with sm_80 instructions (cp.async, ldmatrix, mma.sync), for every architecture from there on:
// correct everywhere, same visibility as the Hopper kernel. After FlashAttention-2. Rank 5.
//
// A block of four warps owns 128 query rows of a head, a warp 32 of them: each piece of k and v that it loads serves
// two products, and reading shared memory is the limit. Two blocks share a processor, one's softmax under the other's
// products.
//
//  1. Copy the block's own rows and the first tile of keys; rows that are dead or past the end become zeros.
//  2. Walk the key tiles that some row sees, the next ones on their way.
//  3. S = q k^T, masked where the block needs it; P = exp2(c S - c maximum). o is rescaled only if some row's maximum
//     of the warp grew, which is seldom on long sequences.
//  4. o += P v.
//  5. Divide, round, store.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "sdepth/config.hpp"
#include "sdepth/kernels/cuda/attention_tiles.cuh"
#include "sdepth/kernels/cuda/error.cuh"
#include "sdepth/kernels/cuda/fragments.cuh"
#include "sdepth/kernels/cuda/portable_tiles.cuh"
#include "sdepth/ops/attention.hpp"

namespace sdepth::inline v0::on_cuda {

/// Tile of the forward kernel.
template <int head_dim, int keys, int stages_, int blocks_>
struct portable_forward_tile {
    static constexpr int dim = head_dim, threads = 128, warp_rows = 32, own = 128, other = keys;
    static constexpr int stages = stages_;  // tiles of k and of v in shared memory
    static constexpr int blocks = blocks_;  // of threads, on a processor
    static constexpr int own_bytes = own * dim * 2, other_bytes = other * dim * 2;
    struct shared {
        unsigned char own[own_bytes];                  // [own][dim], swizzled
        unsigned char moving[stages][2][other_bytes];  // [stage][k, v][other][dim]
        block_range see;                               // here, not in registers, of which there are none to spare
        int live_keys;
    };
};

template <class Tile>
__global__ void __launch_bounds__(Tile::threads, Tile::blocks)
    attention_forward_portable_kernel(const attention_view a, const __nv_bfloat16* q, const __nv_bfloat16* k,
                                      const __nv_bfloat16* v, int q_stride, int kv_stride, __nv_bfloat16* o,
                                      float* lse) {
    constexpr int D = Tile::dim, BM = Tile::own, R = Tile::warp_rows, H = R / 16;
    // Elsewhere than on Hopper the compiler finds no way to hold 64 keys at head size 128 without spilling.
    constexpr int BN = SDEPTH_HOPPER_CODE || D == 64 ? Tile::other : 32, J = BN / 8;
    using tile = portable_tile<D>;
    extern __shared__ __align__(1024) unsigned char raw[];
    auto& sm = *reinterpret_cast<typename Tile::shared*>(raw);
    const int lane = static_cast<int>(threadIdx.x) % 32, warp = static_cast<int>(threadIdx.x) / 32;
    const int row = static_cast<int>(gridDim.x - 1 - blockIdx.x) * BM, head = static_cast<int>(blockIdx.y);
    const int b = static_cast<int>(blockIdx.z), kv_head = head / (a.heads / a.kv_heads);
    const block_range see = blocks_of<BM, BN>(a, b, row, a.queries.of(b), a.keys.of(b));
    if (threadIdx.x == 0) sm.see = see, sm.live_keys = a.keys.of(b);
    __syncthreads();
    // What this thread's row h, r sees: rows 16 h + 8 r below its first.
    const auto sees = [&](int h, int r) {
        const int thread = this_thread();
        return a.visible(b, row + thread / 32 * R + thread % 32 / 4 + 16 * h + 8 * r, a.queries.of(b), a.keys.of(b));
    };
    const float c = a.scale * log2e;
    const std::uint32_t own = shared_address(sm.own) + tile::down(lane) + warp * R * tile::row_bytes;
    const std::uint32_t moving = shared_address(sm.moving);

    // 1, 2. Own rows and the first tiles.
    const std::int64_t at_kv = static_cast<std::int64_t>(b) * a.keys.capacity * kv_stride + kv_head * D;
    const auto copy_k = [&](int n) {
        if (n < sm.see.end)
            portable_copy<D, BN, Tile::threads>{this_thread()}(
                moving + n % Tile::stages * 2 * Tile::other_bytes,
                k + at_kv + static_cast<std::int64_t>(n * BN) * kv_stride, kv_stride, sm.live_keys - n * BN);
    };
    const auto copy_v = [&](int n) {
        if (n < sm.see.end)
            portable_copy<D, BN, Tile::threads>{this_thread()}(
                moving + (n % Tile::stages * 2 + 1) * Tile::other_bytes,
                v + at_kv + static_cast<std::int64_t>(n * BN) * kv_stride, kv_stride, sm.live_keys - n * BN);
    };
    const auto arrived = [] {
        wait_copies<0>();
        __syncthreads();
    };
    portable_copy<D, BM, Tile::threads>{static_cast<int>(threadIdx.x)}(
        shared_address(sm.own), q + (static_cast<std::int64_t>(b) * a.queries.capacity + row) * q_stride + head * D,
        q_stride, a.queries.of(b) - row);
    copy_k(see.begin);
    if (Tile::stages == 2) copy_v(see.begin);
    commit_copies();

    float sum[H][D / 8][4] = {}, m[H][2], total[H][2] = {};
#pragma unroll
    for (int i = 0; i < 2 * H; ++i) m[i / 2][i % 2] = -INFINITY;
    for (int n = see.begin; n < sm.see.end; ++n) {
        arrived();
        if (Tile::stages == 2) copy_k(n + 1);
        copy_v(Tile::stages == 2 ? n + 1 : n);
        commit_copies();
        // 3. Softmax.
        float s[H][J][4];
        const std::uint32_t k_tile = moving + n % Tile::stages * 2 * Tile::other_bytes;
        product_of_rows<D, H, J>(s, own, k_tile + tile::across(lane));
        if (Tile::stages == 1) {
            arrived();
            copy_k(n + 1);
            commit_copies();
        }
        if (!sm.see.full(n)) {
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
        float top[H][2];
        bool grown = false;
#pragma unroll
        for (int i = 0; i < 2 * H; ++i) {
            const int h = i / 2, r = i % 2;
            float t = -INFINITY;
#pragma unroll
            for (int j = 0; j < J; ++j) t = fmaxf(t, fmaxf(s[h][j][2 * r], s[h][j][2 * r + 1]));
            t = fmaxf(t, __shfl_xor_sync(~0u, t, 1));
            top[h][r] = fmaxf(t, __shfl_xor_sync(~0u, t, 2));
            grown |= top[h][r] > m[h][r];
        }
        if (__any_sync(~0u, grown)) {
#pragma unroll
            for (int i = 0; i < 2 * H; ++i) {
                const int h = i / 2, r = i % 2;
                const float next = fmaxf(m[h][r], top[h][r]), shift = next == -INFINITY ? 0.f : next;
                const float factor = exp2_fast((m[h][r] - shift) * c);
                m[h][r] = next, total[h][r] *= factor;
#pragma unroll
                for (int e = 0; e < D / 8; ++e) sum[h][e][2 * r] *= factor, sum[h][e][2 * r + 1] *= factor;
            }
        }
#pragma unroll
        for (int i = 0; i < 2 * H; ++i) {
            const int h = i / 2, r = i % 2;
            const float shift = m[h][r] == -INFINITY ? 0.f : m[h][r] * c;
#pragma unroll
            for (int j = 0; j < 2 * J; ++j) {
                float& x = s[h][j / 2][2 * r + j % 2];
                x = exp2_fast(x * c - shift), total[h][r] += x;
            }
        }
        // 4. o.
        std::uint32_t p[H][J / 2][4];
        round_weights(p, s);
        add_weighted_rows<D>(sum, p, k_tile + Tile::other_bytes + tile::down(lane));
    }

    // 5. Store.
#pragma unroll
    for (int h = 0; h < H; ++h) {
        float inverse[2];
        const int thread = this_thread(), first = row + thread / 32 * R + 16 * h;
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            float& t = total[h][r];
            t += __shfl_xor_sync(~0u, t, 1);
            t += __shfl_xor_sync(~0u, t, 2);
            const key_range range = sees(h, r);
            const bool blind = range.last < range.first;
            const int i = first + thread % 32 / 4 + 8 * r;
            inverse[r] = blind ? 0.f : 1.f / t;
            if (thread % 4 == 0 && i < a.queries.capacity)
                lse[(static_cast<std::int64_t>(b) * a.queries.capacity + i) * a.heads + head] =
                    blind ? -INFINITY : m[h][r] * a.scale + logf(t);
        }
        store_rows<D>(o + static_cast<std::int64_t>(b) * a.queries.capacity * a.heads * D + head * D, a.heads * D,
                      first, a.queries.capacity, sum[h], inverse[0], inverse[1]);
    }
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

}  // namespace sdepth::inline v0::on_cuda
