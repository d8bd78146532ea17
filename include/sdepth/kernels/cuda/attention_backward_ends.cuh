// SPDX-License-Identifier: MIT
// The two small kernels around the backward kernels, their first and last steps, and the scratch that the three share.
// Both are bound by memory: they read o and grad_o, or write grad_q, once. Rank 5.
//
// Members of a Tile: dim, query_block, key_block, takes_heads_apart, sum_count and sum_piece(sums of a block, rows in
// units of 16, columns in units of 8, lane), which gives what a thread of the tensor cores holds there.
#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>

#include "sdepth/carve.hpp"
#include "sdepth/kernels/cuda/attention_tiles.cuh"
#include "sdepth/kernels/cuda/error.cuh"
#include "sdepth/kernels/cuda/fragments.cuh"
#include "sdepth/ops/attention.hpp"

namespace sdepth::inline v0::on_cuda {

/// What the kernels hand to each other: a part of scratch each.
struct backward_scratch {
    int query_blocks;  // of each sequence
    int key_blocks;
    float* sums;       // [B, H, query_blocks][query_block * dim], grad_q in the order of the tensor cores' registers
    float* row_data;   // [B, H, query_blocks][2][query_block]: log-sum-exp in base 2, D
    int4* sight;       // [B, query_blocks], a block_range
    int* turns;        // [B, H, query_blocks], adds done
    float* parts;      // [B, Hkv, key_blocks][2][key_block * dim], grad_k and grad_v of some heads; heads_apart only
    int* parts_turns;  // [B, Hkv, key_blocks], heads that these have; heads_apart only
};

/// Blocks of threads at a time on an H100 or H200. A constant, so that sums have one order on every device.
inline constexpr int backward_round = 132;

/// Whether each query head of a group has items of its own, and the group's grad_k and grad_v are added up in turn:
/// where whole groups would not make a round, of which the longest item, twice the mean, is all the time.
template <class Tile>
constexpr bool heads_apart(const AttentionArgs<__nv_bfloat16>& a) {
    const long long blocks = (a.keys.capacity + Tile::key_block - 1) / Tile::key_block;
    return Tile::takes_heads_apart && a.heads > a.kv_heads && a.batch * blocks * a.kv_heads <= backward_round;
}

/// Splits scratch; with a null pointer only counts: returns the bytes.
template <class Tile>
constexpr std::size_t backward_layout(const AttentionArgs<__nv_bfloat16>& a, void* at, backward_scratch& s) {
    s.query_blocks = (a.queries.capacity + Tile::query_block - 1) / Tile::query_block;
    s.key_blocks = (a.keys.capacity + Tile::key_block - 1) / Tile::key_block;
    const long long blocks = static_cast<long long>(a.batch) * s.query_blocks, slots = blocks * a.heads;
    const long long parts = heads_apart<Tile>(a) ? static_cast<long long>(a.batch) * a.kv_heads * s.key_blocks : 0;
    carver take = at == nullptr ? carver() : carver(at);
    take(s.sums, slots * Tile::sum_count);
    take(s.row_data, slots * 2 * Tile::query_block);
    take(s.sight, blocks);
    take(s.turns, slots);
    take(s.parts, parts * 2 * Tile::key_block * Tile::dim);
    take(s.parts_turns, parts);
    return static_cast<std::size_t>(take.bytes());
}

/// Step 1 of the backward kernels: prepares. One block of threads: one query block of one head.
template <class Tile>
__global__ void __launch_bounds__(256)
    attention_prepare_kernel(const attention_view a, const __nv_bfloat16* o, const __nv_bfloat16* grad_o,
                             const float* lse, const backward_scratch scratch, bool apart) {
    constexpr int lanes = Tile::dim / 8;  // threads of a row, 16 bytes each
    const int block = static_cast<int>(blockIdx.x), head = static_cast<int>(blockIdx.y),
              b = static_cast<int>(blockIdx.z);
    const int row = block * Tile::query_block, thread = static_cast<int>(threadIdx.x);
    const int live_queries = a.queries.of(b), live_keys = a.keys.of(b);
    if (thread < 32 && head == 0) {
        const block_range see = blocks_of<Tile::query_block, Tile::key_block>(a, b, row, live_queries, live_keys);
        if (thread == 0)
            scratch.sight[b * scratch.query_blocks + block] = {see.begin, see.end, see.full_begin, see.full_end};
    }
    if (thread == 0) scratch.turns[(b * a.heads + head) * scratch.query_blocks + block] = 0;
    if (apart && head < a.kv_heads)
        for (int n = block + thread * scratch.query_blocks; n < scratch.key_blocks; n += 256 * scratch.query_blocks)
            scratch.parts_turns[(b * a.kv_heads + head) * scratch.key_blocks + n] = 0;

    // All rows of a thread are on their way at a time.
    constexpr int step = 256 / lanes, ahead = Tile::query_block / step;
    static_assert(Tile::query_block % step == 0);
    const long slot = (static_cast<long>(b) * a.heads + head) * scratch.query_blocks + block;
    float* const to = scratch.row_data + slot * 2 * Tile::query_block;
    uint4 x[ahead], y[ahead];
    float logs[ahead];
    bool blind[ahead];
#pragma unroll
    for (int v = 0; v < ahead; ++v) {
        const int i = row + thread / lanes + v * step;
        const key_range see = a.visible(b, i, live_queries, live_keys);
        blind[v] = see.last < see.first;
        if (blind[v]) continue;
        const long at = (static_cast<long>(b) * a.queries.capacity + i) * a.heads + head;
        x[v] = *reinterpret_cast<const uint4*>(o + at * Tile::dim + thread % lanes * 8);
        y[v] = *reinterpret_cast<const uint4*>(grad_o + at * Tile::dim + thread % lanes * 8);
        logs[v] = lse[at];
    }
#pragma unroll
    for (int v = 0; v < ahead; ++v) {
        float sum = 0;
        if (!blind[v]) {
            const auto* xs = reinterpret_cast<const __nv_bfloat162*>(&x[v]);
            const auto* ys = reinterpret_cast<const __nv_bfloat162*>(&y[v]);
#pragma unroll
            for (int e = 0; e < 4; ++e) {
                const float2 p = __bfloat1622float2(xs[e]), r = __bfloat1622float2(ys[e]);
                sum += p.x * r.x + p.y * r.y;
            }
        }
#pragma unroll
        for (int width = lanes / 2; width > 0; width /= 2) sum += __shfl_xor_sync(~0u, sum, width);
        if (thread % lanes != 0) continue;
        to[Tile::query_block + thread / lanes + v * step] = sum;
        to[thread / lanes + v * step] = blind[v] ? INFINITY : logs[v] * log2e;
    }
}

/// Rows 16 row .. + 15, columns 8 column .. + 31 of a block of sums, times `scale` and rounded: this thread's eight
/// columns from 8 (lane % 4) on, in row lane / 4 and in the one eight below. A block without sums (`there`) is zero.
template <class Tile>
__device__ inline void rounded_sums(uint4 (&own)[2], const float* sums, int row, int column, float scale, bool there) {
    const int lane = static_cast<int>(threadIdx.x) % 32, quarter = lane % 4;
    // A thread holds two columns of every eight; four threads exchange theirs so that each has eight in a row.
    std::uint32_t part[2][4];
#pragma unroll
    for (int u = 0; u < 4; ++u) {
        const float4 x = there ? Tile::sum_piece(sums, row, column + u, lane) : float4{};
        part[0][u] = pack_bf16(x.x * scale, x.y * scale), part[1][u] = pack_bf16(x.z * scale, x.w * scale);
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        std::uint32_t whole[4] = {};
#pragma unroll
        for (int step = 0; step < 4; ++step) {
            // In this step thread t sends piece t ^ step and receives its own piece of thread t ^ step.
            const int other = quarter ^ step;
            const std::uint32_t low = other & 1 ? part[r][1] : part[r][0], high = other & 1 ? part[r][3] : part[r][2];
            const std::uint32_t got = __shfl_xor_sync(~0u, other & 2 ? high : low, step);
            whole[0] = other == 0 ? got : whole[0], whole[1] = other == 1 ? got : whole[1];
            whole[2] = other == 2 ? got : whole[2], whole[3] = other == 3 ? got : whole[3];
        }
        own[r] = uint4{whole[0], whole[1], whole[2], whole[3]};
    }
}

/// Their last step: finishes. One block of 128 threads: 64 rows and half the columns of a query block of one head.
template <class Tile>
__global__ void __launch_bounds__(128) attention_finish_kernel(const attention_view a, const backward_scratch scratch,
                                                               __nv_bfloat16* grad_q, int row_stride) {
    constexpr int parts = Tile::query_block / 32;
    const int block = static_cast<int>(blockIdx.x) / parts, part = static_cast<int>(blockIdx.x) % parts;
    const int head = static_cast<int>(blockIdx.y), b = static_cast<int>(blockIdx.z),
              thread = static_cast<int>(threadIdx.x);
    const int4 see = scratch.sight[b * scratch.query_blocks + block];
    const long slot = (static_cast<long>(b) * a.heads + head) * scratch.query_blocks + block;
    const int rows = part / 2 * 4 + thread / 32, columns = part % 2 * (Tile::dim / 16);  // units of 16, 8
    const int row = block * Tile::query_block + rows * 16 + thread % 32 / 4;
#pragma unroll
    for (int i = 0; i < Tile::dim / 64; ++i) {
        uint4 own[2];
        rounded_sums<Tile>(own, scratch.sums + slot * Tile::sum_count, rows, columns + 4 * i, a.scale, see.x < see.y);
#pragma unroll
        for (int r = 0; r < 2; ++r)
            if (row + 8 * r < a.queries.capacity)
                *reinterpret_cast<uint4*>(grad_q +
                                          (static_cast<long>(b) * a.queries.capacity + row + 8 * r) * row_stride +
                                          head * Tile::dim + columns * 8 + 32 * i + 8 * (thread % 4)) = own[r];
    }
}

template <class Tile>
void attention_prepare(const AttentionBackwardArgs<__nv_bfloat16>& g, const backward_scratch& s, cudaStream_t stream) {
    const AttentionArgs<__nv_bfloat16>& a = g.forward;
    const dim3 grid(static_cast<unsigned>(s.query_blocks), static_cast<unsigned>(a.heads),
                    static_cast<unsigned>(a.batch));
    attention_prepare_kernel<Tile>
        <<<grid, 256, 0, stream>>>(attention_view(a), a.o, g.grad_o, a.lse, s, heads_apart<Tile>(a));
    check(cudaGetLastError(), "attention_backward");
}
template <class Tile>
void attention_finish(const AttentionBackwardArgs<__nv_bfloat16>& g, const backward_scratch& s, cudaStream_t stream) {
    const AttentionArgs<__nv_bfloat16>& a = g.forward;
    const dim3 grid(static_cast<unsigned>(s.query_blocks * (Tile::query_block / 32)), static_cast<unsigned>(a.heads),
                    static_cast<unsigned>(a.batch));
    attention_finish_kernel<Tile><<<grid, 128, 0, stream>>>(attention_view(a), s, g.grad_q, a.q_stride());
    check(cudaGetLastError(), "attention_backward");
}

}  // namespace sdepth::inline v0::on_cuda
