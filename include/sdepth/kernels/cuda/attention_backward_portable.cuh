// SPDX-License-Identifier: MIT
// Attention backward with sm_80 instructions (cp.async, ldmatrix, mma.sync), for every architecture from there on:
// correct everywhere, deterministic, same visibility as the Hopper kernels. Rank 5.
//
// Three launches: attention_prepare_kernel, attention_backward_portable_kernel, attention_finish_kernel. In the middle
// one a block of threads owns 128 keys of one KV head and walks the query blocks, of all query heads of the group, that
// see them. The limit is reading shared memory, so each warp has 32 keys and only one of the two gradients in
// registers: warps 0 to 3 grad_v, warps 4 to 7 grad_k. grad_q is summed in fp32 in memory in the order of key blocks,
// so that two runs agree bit for bit.
//
//  1. Prepare: D = o . grad_o per row, log-sum-exp in base 2 (+infinity where a row sees nothing, so that P = 0), the
//     key blocks each query block sees, no adds done yet.
//  2. Order of work: key block 0 of all heads, then 1, ...: the longest first (causal). Query blocks go from the last
//     to the first, the heads of the group together: block n adds to a query block a step or two after block n - 1.
//     Blocks of threads start in the order of their numbers, as on every device so far: who waits, waits for earlier.
//
// Step t of the warps, between two barriers:
//
//     warps 0 to 3                                      warps 4 to 7
//  3. grad_q of step t - 1, a piece each              3. grad_k += dS^T q of step t - 1 (dS from registers)
//  4. S^T = k q^T, P = exp2(c S - lse) to shared      4. grad_q of step t - 1, a piece each
//  5. grad_v += P^T grad_o (P from registers)         5. dP^T = v grad_o^T, dS = P (dP - D), which replaces P
//
//     Warps w and w + 4 have the same 32 keys and hand P over among themselves, at head size 64 all together.
//  6. Warp 3, as all have added to grad_q of step t - 1, passes the turn there and waits for that of step t.
//     Warps meet at mbarriers only, and every thread arrives itself: compute-sanitizer's race checker loses its way
//     among several named barriers.
//  7. After the last query block: scale grad_k, store both.
//  8. Finish: grad_q in bf16.
#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <cstdint>

#include "sdepth/kernels/cuda/attention_backward_ends.cuh"
#include "sdepth/kernels/cuda/attention_tiles.cuh"
#include "sdepth/kernels/cuda/error.cuh"
#include "sdepth/kernels/cuda/fragments.cuh"
#include "sdepth/kernels/cuda/mbarrier.cuh"
#include "sdepth/kernels/cuda/portable_tiles.cuh"
#include "sdepth/ops/attention.hpp"

namespace sdepth::inline v0::on_cuda {

/// Tile of the backward kernel; at both head sizes 162 KB, which is what sm_80 has.
template <int head_dim>
struct portable_backward_tile {
    static constexpr int dim = head_dim, key_block = 128, query_block = dim == 64 ? 128 : 64, threads = 256;
    static constexpr bool takes_heads_apart = false;
    static constexpr int q_bytes = query_block * dim * 2, kv_bytes = key_block * dim * 2;
    static constexpr int sum_count = query_block * dim;  // of grad_q, one block
    static constexpr int handover = dim == 64 ? 4 : 1;   // P goes from so many warps to as many

    /// Where sums of rows 16 row .. + 15, columns 8 column .. + 7 lie: as a thread's four registers, in the order of
    /// register and lane.
    __device__ static int sum_place(int row, int column) { return (row * (dim / 8) + column) * 128; }
    __device__ static float4 sum_piece(const float* sums, int row, int column, int lane) {
        const float* at = sums + sum_place(row, column) + lane;
        return {at[0], at[32], at[64], at[96]};
    }

    struct step_info {
        int slot;   // which (b, head, query block), counted as in backward_scratch; -1 ends the walk
        int place;  // query block * query heads of the group + head in the group
        int order;  // key blocks that add before this one
        int full;   // every row sees every key of the block
    };
    // Kept in shared memory, not in registers, of which the warps have none to spare.
    struct item_info {
        int n, b, kv_head;  // key block, sequence, KV head
        int live_queries, live_keys, group_size;
    };
    // Query blocks top .. top + 31, of which those in `todo` see the key block: bit l and order[l] stand for top + 31 -
    // l.
    struct walk_info {
        int top;
        unsigned todo;
        int order[32];  // twice the key blocks that add before this one, odd if every row sees all of it
    };
    struct shared {
        unsigned char k[kv_bytes];                         // [key_block][dim], swizzled like all tiles
        unsigned char v[kv_bytes];                         // [key_block][dim]
        unsigned char q[2][q_bytes];                       // [query_block][dim]
        unsigned char grad_o[2][q_bytes];                  // [query_block][dim]
        unsigned char ds[2][key_block * query_block * 2];  // P, then dS; [key_block][query_block]
        float row_data[2][2][query_block];                 // [stage]: log-sum-exp, D
        step_info step[8];
        item_info item;
        walk_info walk;
        // One phase a step. Met: all warps; own: q of the last step is free; added: so are its sums, for warp 3.
        mbarrier met, own, added, p_written[4 / handover];
    };
};

/// Adds a warp's 32 x 32 piece of dS k at step t to grad_q.
template <class Tile>
__device__ __forceinline__ void add_grad_q(const backward_scratch& scratch, typename Tile::shared& sm, int t) {
    constexpr int D = Tile::dim, BM = Tile::query_block, BN = Tile::key_block, rows = BM / 32;
    const typename Tile::step_info step = sm.step[t % 8];
    const int lane = this_thread() % 32, warp = this_thread() / 32;
    float dq[2][4][4] = {};
    // Pieces begin at multiples of 32 columns, so that the next 16 are one flipped bit away.
    const std::uint32_t ds =
        portable_tile<BM>::at(shared_address(sm.ds[t % 2]) + portable_tile<BM>::across(lane), 0, warp % rows * 2);
    const std::uint32_t k =
        portable_tile<D>::at(shared_address(sm.k) + portable_tile<D>::down(lane), 0, warp / rows * 2);
#pragma unroll
    for (int kk = 0; kk < BN / 16; ++kk) {
        std::uint32_t x[2][4], y[4];
#pragma unroll
        for (int h = 0; h < 2; ++h)
            load_matrices_transposed(x[h], (ds ^ h * 32) + kk * 16 * portable_tile<BM>::row_bytes);
#pragma unroll
        for (int j = 0; j < 2; ++j) {
            load_matrices_transposed(y, (k ^ j * 32) + kk * 16 * portable_tile<D>::row_bytes);
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                multiply_16x8x16(dq[h][2 * j], x[h], y[0], y[1]);
                multiply_16x8x16(dq[h][2 * j + 1], x[h], y[2], y[3]);
            }
        }
    }
    float* const to = scratch.sums + static_cast<std::int64_t>(step.slot) * Tile::sum_count +
                      Tile::sum_place(warp % rows * 2, warp / rows * 4) + lane;
#pragma unroll
    for (int i = 0; i < 32; ++i) {
        float* const at = to + Tile::sum_place(i / 16, i / 4 % 4) + i % 4 * 32;
        const float x = dq[i / 16][i / 4 % 4][i % 4];
        if (step.order == 0)
            *at = x;
        else
            asm volatile("red.relaxed.gpu.global.add.f32 [%0], %1;" ::"l"(at), "f"(x) : "memory");
    }
}

template <class Tile>
__global__ void __launch_bounds__(Tile::threads, 1)
    attention_backward_portable_kernel(const attention_view a, const __nv_bfloat16* q, const __nv_bfloat16* k,
                                       const __nv_bfloat16* v, int q_stride, int kv_stride, const __nv_bfloat16* grad_o,
                                       const backward_scratch scratch, __nv_bfloat16* grad_k, __nv_bfloat16* grad_v) {
    constexpr int D = Tile::dim, BM = Tile::query_block, BN = Tile::key_block, J = BM / 8;
    extern __shared__ __align__(1024) unsigned char raw[];
    auto& sm = *reinterpret_cast<typename Tile::shared*>(raw);
    const int warp = static_cast<int>(threadIdx.x) / 32;
    if (threadIdx.x == 0) {
        const int column = static_cast<int>(blockIdx.x), b = column / a.kv_heads;
        sm.item.n = static_cast<int>(blockIdx.y), sm.item.b = b, sm.item.kv_head = column % a.kv_heads;
        sm.item.live_queries = a.queries.of(b), sm.item.live_keys = a.keys.of(b);
        sm.item.group_size = a.heads / a.kv_heads;
        sm.walk.top = scratch.query_blocks, sm.walk.todo = 0;
        sm.met.init(256), sm.own.init(128), sm.added.init(256 - 32);
        for (mbarrier& written : sm.p_written) written.init(32 * Tile::handover);
    }
    __syncthreads();
    const auto at_kv = [&] {
        return (static_cast<std::int64_t>(sm.item.b) * a.keys.capacity + sm.item.n * BN) * kv_stride +
               sm.item.kv_head * D;
    };

    // 2. Writes what step t is, after step t - 1; by one whole warp.
    const auto find = [&](int t) {
        const int l = this_thread() % 32;
        typename Tile::step_info step;
        if (t > 0) step = sm.step[(t - 1) % 8];
        if (t == 0 || (step.slot >= 0 && (step.place + 1) % sm.item.group_size == 0)) {
            int top = sm.walk.top;
            unsigned todo = sm.walk.todo;
            for (; todo == 0 && top > 0; top -= 32) {
                // Lane l looks at query block top - 1 - l: does it see key block n, and how.
                int order = -1;
                if (top > l) {
                    const int n = sm.item.n;
                    const int4 see = scratch.sight[sm.item.b * scratch.query_blocks + top - 1 - l];
                    if (see.x <= n && n < see.y) order = (n - see.x) * 2 + (see.z <= n && n < see.w);
                }
                todo = __ballot_sync(~0u, order >= 0);
                sm.walk.order[l] = order;
                __syncwarp();
            }
            const int at = __ffs(static_cast<int>(todo)) - 1, block = top + 31 - at;
            step.slot =
                todo == 0 ? -1
                          : (sm.item.b * a.heads + sm.item.kv_head * sm.item.group_size) * scratch.query_blocks + block;
            step.place = block * sm.item.group_size;
            const int order = sm.walk.order[max(at, 0)];
            step.order = order / 2, step.full = order % 2;
            __syncwarp();
            if (l == 0) sm.walk.top = top, sm.walk.todo = todo & (todo - 1);
        } else if (step.slot >= 0) {
            ++step.place, step.slot += scratch.query_blocks;
        }
        if (l == 0) sm.step[t % 8] = step;
        __syncwarp();
    };
    // Copies of step t's rows, by four warps each.
    const auto copy_q = [&](int t) {
        const typename Tile::step_info step = sm.step[t % 8];
        if (step.slot < 0) return;
        const int block = step.place / sm.item.group_size,
                  head = sm.item.kv_head * sm.item.group_size + step.place % sm.item.group_size;
        portable_copy<D, BM, 128>{this_thread() % 128}(
            shared_address(sm.q[t % 2]),
            q + (static_cast<std::int64_t>(sm.item.b) * a.queries.capacity + block * BM) * q_stride + head * D,
            q_stride, sm.item.live_queries - block * BM);
    };
    const auto copy_grad_o = [&](int t) {
        const typename Tile::step_info step = sm.step[t % 8];
        if (step.slot < 0) return;
        const int block = step.place / sm.item.group_size,
                  head = sm.item.kv_head * sm.item.group_size + step.place % sm.item.group_size;
        portable_copy<D, BM, 128>{this_thread() % 128}(
            shared_address(sm.grad_o[t % 2]),
            grad_o + ((static_cast<std::int64_t>(sm.item.b) * a.queries.capacity + block * BM) * a.heads + head) * D,
            a.heads * D, sm.item.live_queries - block * BM);
        const int thread = this_thread() % 128;
        if (thread < 2 * BM / 4)
            copy_16(shared_address(sm.row_data[t % 2]) + thread * 16,
                    scratch.row_data + static_cast<std::int64_t>(step.slot) * 2 * BM + thread * 4);
    };

    // 6. Passes the turn at step t's place in grad_q. What was read before is ordered before what follows.
    const auto pass = [&](int t) {
        asm volatile("fence.acq_rel.gpu;" ::: "memory");
        if (this_thread() % 32 == 0 && t >= 0)
            store_relaxed(scratch.turns + sm.step[t % 8].slot, sm.step[t % 8].order + 1);
    };

    if (warp == 0) find(0), find(1);
    portable_copy<D, BN, 256>{static_cast<int>(threadIdx.x)}(shared_address(sm.k), k + at_kv(), kv_stride,
                                                             sm.item.live_keys - sm.item.n * BN);
    portable_copy<D, BN, 256>{static_cast<int>(threadIdx.x)}(shared_address(sm.v), v + at_kv(), kv_stride,
                                                             sm.item.live_keys - sm.item.n * BN);
    __syncthreads();
    warp < 4 ? copy_grad_o(0) : copy_q(0);
    commit_copies();

    float sum[2][D / 8][4] = {};
    int t = 0;
    // This lane's place in P and dS; of row pair h, half r, query columns 8 j and on.
    const auto ds_lane = [&] {
        const int thread = this_thread() % 128, l = thread % 32;
        return shared_address(sm.ds[t % 2]) +
               static_cast<std::uint32_t>((thread / 32 * 32 + l / 4) * 2 * BM + l / 4 * 16 + l % 4 * 4);
    };
    // Operand A: this warp's 32 rows of k or v.
    const auto own_rows = [&](const unsigned char* tile) {
        const int thread = this_thread() % 128;
        return shared_address(tile) + portable_tile<D>::down(thread % 32) +
               thread / 32 * 32 * portable_tile<D>::row_bytes;
    };
    const auto ds_place = [&](std::uint32_t base, int h, int r, int j) {
        return (base ^ static_cast<std::uint32_t>(j % 8 * 16)) +
               static_cast<std::uint32_t>(j / 8 * 128 + (16 * h + 8 * r) * 2 * BM);
    };

    // P of this step in warps 0 to 3, dS of the last in warps 4 to 7; one name, so that no registers hold both.
    std::uint32_t w[2][J / 2][4];
    for (;; ++t) {
        wait_copies<0>();
        sm.met.arrive(), sm.met.wait_portable(t % 2);
        const bool more = sm.step[t % 8].slot >= 0;
        if (this_thread() < 128) {
            if (more) copy_grad_o(t + 1);
            commit_copies();
            // 3.
            if (t > 0) add_grad_q<Tile>(scratch, sm, t - 1);
            if (!more) break;
            if (this_thread() / 32 != 3) sm.added.arrive();
            if (this_thread() < 32) find(t + 2);
            // 4. P, to shared memory in fp16, which is nearer than bf16.
            float s[2][J][4];
            product_of_rows<D, 2, J>(s, own_rows(sm.k),
                                     shared_address(sm.q[t % 2]) + portable_tile<D>::across(this_thread() % 32));
            if (!sm.step[t % 8].full) {
                const int thread = this_thread(), key = sm.item.n * BN + thread / 32 * 32 + thread % 32 / 4;
                const int first = sm.step[t % 8].place / sm.item.group_size * BM + thread % 4 * 2;
#pragma unroll
                for (int i = 0; i < 2 * J; ++i) {
                    asm volatile("" ::: "memory");  // no loads ahead, into registers that are not there
                    const key_range see =
                        a.visible(sm.item.b, first + i / 2 * 8 + i % 2, sm.item.live_queries, sm.item.live_keys);
#pragma unroll
                    for (int e = 0; e < 4; ++e)
                        if (key + 8 * e < see.first || key + 8 * e > see.last)
                            s[e / 2][i / 2][e % 2 * 2 + i % 2] = -INFINITY;
                }
            }
            const float c = a.scale * log2e;
            const float* const rows = sm.row_data[t % 2][0] + this_thread() % 4 * 2;
            const std::uint32_t to = ds_lane();
#pragma unroll
            for (int j = 0; j < J; ++j) {
                const float2 lse = *reinterpret_cast<const float2*>(rows + 8 * j);
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    float* const x = &s[i / 2][j][i % 2 * 2];
                    x[0] = exp2_fast(x[0] * c - lse.x), x[1] = exp2_fast(x[1] * c - lse.y);
                    w[i / 2][j / 2][j % 2 * 2 + i % 2] = pack_bf16(x[0], x[1]);
                    store_shared(ds_place(to, i / 2, i % 2, j), pack_half(x[0], x[1]));
                }
            }
            sm.p_written[this_thread() / (32 * Tile::handover)].arrive();
            // 6.
            if (this_thread() / 32 == 3) {
                sm.added.wait_portable(t % 2);
                const int* const place = scratch.turns + sm.step[t % 8].slot;
                int turn = load_relaxed(place);
                pass(t - 1);
                while (turn != sm.step[t % 8].order) turn = load_acquire(place);
            }
            // 5.
            add_weighted_rows<D>(sum, w, shared_address(sm.grad_o[t % 2]) + portable_tile<D>::down(this_thread() % 32));
        } else {
            // 3.
            if (t > 0)
                add_weighted_rows<D>(sum, w,
                                     shared_address(sm.q[(t - 1) % 2]) + portable_tile<D>::down(this_thread() % 32));
            sm.own.arrive(), sm.own.wait_portable(t % 2);  // all are done with q of step t - 1
            if (more) copy_q(t + 1);
            commit_copies();
            // 4.
            if (t > 0) add_grad_q<Tile>(scratch, sm, t - 1);
            if (!more) break;
            sm.added.arrive();
            // 5. dS.
            float dp[2][J][4];
            product_of_rows<D, 2, J>(dp, own_rows(sm.v),
                                     shared_address(sm.grad_o[t % 2]) + portable_tile<D>::across(this_thread() % 32));
            sm.p_written[this_thread() % 128 / (32 * Tile::handover)].wait_portable(t % 2);
            const std::uint32_t to = ds_lane();
            const float* const rows = sm.row_data[t % 2][1] + this_thread() % 4 * 2;
#pragma unroll
            for (int j = 0; j < J; ++j) {
                const float2 drop = *reinterpret_cast<const float2*>(rows + 8 * j);
#pragma unroll
                for (int i = 0; i < 4; ++i) {
                    const float2 p = unpack_half(load_shared(ds_place(to, i / 2, i % 2, j)));
                    const float* const x = &dp[i / 2][j][i % 2 * 2];
                    const std::uint32_t y = pack_bf16(p.x * (x[0] - drop.x), p.y * (x[1] - drop.y));
                    w[i / 2][j / 2][j % 2 * 2 + i % 2] = y;
                    store_shared(ds_place(to, i / 2, i % 2, j), y);
                }
            }
        }
    }
    __syncthreads();
    if (warp == 0) pass(t - 1);

    // 7. Store.
    const bool keys = warp >= 4;
    const float scale = keys ? a.scale : 1.f;
#pragma unroll
    for (int h = 0; h < 2; ++h)
        store_rows<D>((keys ? grad_k : grad_v) + at_kv(), kv_stride, this_thread() % 128 / 32 * 32 + 16 * h,
                      a.keys.capacity - sm.item.n * BN, sum[h], scale, scale);
}

/// Backward attention on one stream but for the last step; `scratch` has backward_layout bytes, 256-byte aligned, with
/// any content. Returns where it holds what.
template <class Tile>
backward_scratch attention_backward_portable(const AttentionBackwardArgs<__nv_bfloat16>& g, void* scratch,
                                             cudaStream_t stream) {
    const AttentionArgs<__nv_bfloat16>& a = g.forward;
    backward_scratch s{};
    backward_layout<Tile>(a, scratch, s);
    const attention_view view(a);
    attention_prepare<Tile>(g, s, stream);

    const int bytes = static_cast<int>(sizeof(typename Tile::shared));
    const dim3 grid(static_cast<unsigned>(a.batch * a.kv_heads),
                    static_cast<unsigned>((a.keys.capacity + Tile::key_block - 1) / Tile::key_block));
    check(cudaFuncSetAttribute(attention_backward_portable_kernel<Tile>, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               bytes),
          "attention_backward");
    attention_backward_portable_kernel<Tile><<<grid, Tile::threads, bytes, stream>>>(
        view, a.q, a.k, a.v, a.q_stride(), a.kv_stride(), g.grad_o, s, g.grad_k, g.grad_v);
    check(cudaGetLastError(), "attention_backward");
    return s;
}

}  // namespace sdepth::inline v0::on_cuda
