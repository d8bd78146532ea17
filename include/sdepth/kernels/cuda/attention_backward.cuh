// SPDX-License-Identifier: MIT
// Attention backward for sm_90a (wgmma and the copy engine), after FlashAttention-3, deterministic. Visibility, sizes
// and live rows are run-time data; a kernel is a template of its tile only. Rank 5.
//
// Three launches: attention_prepare_kernel, attention_backward_kernel, and attention_finish_kernel or
// prepared_finish_kernel. In the middle one a block of threads owns 128 keys of one KV head and walks the query blocks
// that see them, of all query heads of the group, so that no other block adds to grad_k and grad_v, which stay in
// registers; where that would leave too few items, of one head, and the sums of a group meet in memory, head after
// head. grad_q is summed in fp32 in memory; the adds to a query block are done in the order of key blocks, so that two
// runs agree bit for bit.
//
//  1. Prepare: D = o . grad_o per row (in the code `drop`, as D is the head size), log-sum-exp in base 2 (+infinity
//     where a row sees nothing, so that P = 0), the key blocks each query block sees, no adds done yet.
//  2. Order of work: key block 0 of all heads, then 1, ...: the longest first (causal), dealt to the blocks of threads
//     there and back. Query blocks go from the last to the first, an item's heads together: key block n adds to one a
//     step after key block n - 1. An item waits for items before it alone, a block of threads takes its items in rising
//     order, and all blocks are on the device: turns come.
//  3. Producer: k and v of the item, then for each query block q, grad_o, lse, D through a ring of `stages`.
//  4. Consumers, two warpgroups of 64 keys each:  S^T = k q^T,  dP^T = v grad_o^T.
//  5. P = exp2(c S - lse), grad_v += P^T grad_o (P from registers).
//  6. dS = P (dP - D), grad_k += dS^T q (dS from registers); dS also to shared memory.
//  7. grad_q block = dS k over all 128 keys: half the columns for each warpgroup, which then starts its next S^T, or
//     (head size 64, where registers allow it) by a third warpgroup, so that the first two need not meet.
//  8. The block goes to shared memory; one of two other warps waits for its turn, adds it to memory and passes the turn
//     on.
//  9. After the last query block: scale grad_k, store both. Where heads are apart, add those before and leave the sums
//     to the next one; the last stores.
// 10. Finish: grad_q in bf16.
#pragma once

#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>

#include "sdepth/kernels/cuda/attention_backward_ends.cuh"
#include "sdepth/kernels/cuda/attention_tiles.cuh"
#include "sdepth/kernels/cuda/error.cuh"
#include "sdepth/kernels/cuda/fragments.cuh"
#include "sdepth/kernels/cuda/launch.cuh"
#include "sdepth/kernels/cuda/mbarrier.cuh"
#include "sdepth/kernels/cuda/tma.cuh"
#include "sdepth/kernels/cuda/wgmma.cuh"

namespace sdepth::inline v0::on_cuda {

/// Order of work (step 2): key block after key block, each for all `columns` of some query heads of a sequence.
struct backward_schedule {
    int items, columns, group_size;  // group_size: query heads of a KV head
    int each;                        // query heads of an item: all of a group, or one, see heads_apart
};

/// Tile of the backward kernel: what one instantiation is specialised for.
template <int head_dim, int ring, bool apart_>
struct backward_tile {
    static constexpr int dim = head_dim, query_block = 64, key_block = 128, stages = ring;
    static constexpr bool takes_heads_apart = true;
    static constexpr bool apart = apart_;  // step 7 has a warpgroup of its own, so that the others need not meet
    static constexpr int threads = apart ? 512 : 384;
    static constexpr int producer_registers = 24, consumer_registers = apart ? (dim == 64 ? 208 : 216) : 240;
    static constexpr int sum_registers = 512 - producer_registers - 2 * consumer_registers;
    static constexpr int sum_columns = dim / 2;  // of grad_q, each warpgroup's share in step 7
    static constexpr int q_bytes = query_block * dim * 2, kv_bytes = key_block * dim * 2;
    static constexpr int sum_count = query_block * dim;  // of grad_q, one block

    /// A thread's four sums of rows 16 row .. + 15, columns 8 column .. + 7: see step 8.
    __device__ static float4 sum_piece(const float* sums, int row, int column, int lane) {
        constexpr int half = sum_columns / 8;
        return reinterpret_cast<const float4*>(
            sums)[column / half * (sum_count / 8) + column % half * 128 + row * 32 + lane];
    }

    struct stage_info {
        int slot;   // which (b, head, query block), counted as in backward_scratch; -1 ends the item
        int row;    // first query row
        int order;  // key blocks that add before this one
        int full;   // every row sees every key of the block
    };
    // Kept in shared memory, not in registers, of which the warpgroups have none to spare.
    struct item_info {
        int round;
        int n, b, kv_head;  // key block (-1: no more items), sequence, KV head
        int part;           // first query head, counted in the group
        int live_queries, live_keys;
    };
    struct shared {
        alignas(1024) unsigned char k[kv_bytes];           // [dim / 64][key_block][64]
        unsigned char v[kv_bytes];                         // [dim / 64][key_block][64]
        unsigned char q[stages][q_bytes];                  // [dim / 64][query_block][64]
        unsigned char grad_o[stages][q_bytes];             // [dim / 64][query_block][64]
        unsigned char ds[2][key_block * query_block * 2];  // [query_block / 64][key_block][64]
        float sum[2][sum_count];                           // [warpgroup][..][128][4]
        float row_data[stages][2][query_block];            // log-sum-exp, D
        stage_info info[stages];
        item_info item;
        int sum_slot[2], sum_order[2];
        int ds_slot[2], ds_order[2];  // -1: no more of this item, -2: no more at all
        mbarrier kv_full, kv_free, full[stages], free[stages], sum_full[2], sum_free[2], ds_full[2], ds_free[2],
            sums_done;
    };
};

/// Step 9: adds the gradients of the group's heads before this item's one, in order; whether it is the last. If not,
/// leaves the sums behind for the next. By both consumer warpgroups.
template <class Tile>
__device__ __forceinline__ bool add_parts(float (&grad_k)[Tile::dim / 2], float (&grad_v)[Tile::dim / 2],
                                          const typename Tile::item_info& item, const attention_view& a,
                                          const backward_scratch& scratch, const backward_schedule& schedule) {
    constexpr int pieces = Tile::dim / 8;  // of four numbers, in each gradient
    const int thread = this_thread() - 128, own = 1 + thread / 128, both = 3, part = item.part;
    const int place = (item.b * a.kv_heads + item.kv_head) * scratch.key_blocks + item.n;
    int* const turn = scratch.parts_turns + place;
    float4* const at =
        reinterpret_cast<float4*>(scratch.parts) + static_cast<std::int64_t>(place) * (2 * pieces * 256) + thread;
    if (part > 0) {
        if (thread % 128 == 0) wait_turn(turn, part);
        named_sync(own, 128);
        const auto add = [](float(&sums)[Tile::dim / 2], const float4* before) {
#pragma unroll
            for (int i = 0; i < pieces; ++i) {
                const float4 x = before[i * 256];
                sums[4 * i] = x.x + sums[4 * i], sums[4 * i + 1] = x.y + sums[4 * i + 1];
                sums[4 * i + 2] = x.z + sums[4 * i + 2], sums[4 * i + 3] = x.w + sums[4 * i + 3];
            }
        };
        add(grad_k, at), add(grad_v, at + pieces * 256);
    }
    if (part == schedule.group_size - 1) return true;
#pragma unroll
    for (int i = 0; i < pieces; ++i) {
        at[i * 256] = {grad_k[4 * i], grad_k[4 * i + 1], grad_k[4 * i + 2], grad_k[4 * i + 3]};
        at[(pieces + i) * 256] = {grad_v[4 * i], grad_v[4 * i + 1], grad_v[4 * i + 2], grad_v[4 * i + 3]};
    }
    named_sync(both, 256);
    if (thread == 0) pass_turn(turn, part + 1);
    return false;
}

/// Step 2: round `round`'s item of this block of threads. They are dealt to the blocks there and back again, so that
/// sums of lengths agree.
__device__ __forceinline__ int backward_item(int round) {
    const int grid = static_cast<int>(gridDim.x), me = this_block(round);
    return round * grid + (round % 2 == 0 ? me : grid - 1 - me);
}

/// Step 3, by one warp.
template <class Tile>
__device__ __forceinline__ void backward_producer(typename Tile::shared& sm, const CUtensorMap& q_map,
                                                  const CUtensorMap& k_map, const CUtensorMap& v_map,
                                                  const CUtensorMap& grad_o_map, const attention_view& a,
                                                  const backward_scratch& scratch, const backward_schedule& schedule) {
    constexpr int BM = Tile::query_block, BN = Tile::key_block, chunks = Tile::dim / 64;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane == 0) prefetch_map(q_map), prefetch_map(k_map), prefetch_map(v_map), prefetch_map(grad_o_map);
    int count = 0;
    int round = 0;
    while (true) {
        const int item = backward_item(round);
        sm.kv_free.wait((round & 1) ^ 1);
        if (lane == 0) {
            const int column = item % schedule.columns * schedule.each, n = item / schedule.columns;
            const int b = column / a.heads, head = column % a.heads, kv_head = head / schedule.group_size;
            sm.item = {round,       item < schedule.items ? n : -1, b,
                       kv_head,     head % schedule.group_size,     a.queries.of(b),
                       a.keys.of(b)};
            if (item < schedule.items) {
                sm.kv_full.arrive_expect(2 * Tile::kv_bytes);
                load_tile(sm.k, k_map, sm.kv_full, n * BN, kv_head * chunks, b);
                load_tile(sm.v, v_map, sm.kv_full, n * BN, kv_head * chunks, b);
            } else {
                sm.kv_full.arrive();
            }
        }
        if (item >= schedule.items) break;
        __syncwarp();
        for (int top = scratch.query_blocks - 1; top >= 0; top -= 32) {
            // Lane l looks at query block top - l: does it see key block n, and how.
            const int n = sm.item.n;
            int order = -1;  // twice the key blocks before n, odd if every row sees all of n
            if (top - lane >= 0) {
                const int4 see = scratch.sight[sm.item.b * scratch.query_blocks + top - lane];
                if (n < see.y) order = (n - see.x) * 2 + (see.z <= n && n < see.w);
            }
            unsigned todo = __ballot_sync(~0u, order >= 0);
            while (todo != 0) {
                const int at = __ffs(static_cast<int>(todo)) - 1;
                todo &= todo - 1;
#pragma unroll 1
                for (int u = 0; u < schedule.each; ++u) {
                    const int s = count % Tile::stages;
                    sm.free[s].wait((count / Tile::stages & 1) ^ 1);
                    ++count;
                    if (lane != at) continue;
                    const int block = top - lane;
                    const int head = sm.item.kv_head * schedule.group_size + sm.item.part + u;
                    const int slot = (sm.item.b * a.heads + head) * scratch.query_blocks + block;
                    sm.info[s] = {slot, block * BM, order / 2, order % 2};
                    sm.full[s].arrive_expect(2 * Tile::q_bytes + 2 * BM * 4);
                    load_tile(sm.q[s], q_map, sm.full[s], block * BM, head * chunks, sm.item.b);
                    load_tile(sm.grad_o[s], grad_o_map, sm.full[s], block * BM, head * chunks, sm.item.b);
                    load_bytes(sm.row_data[s], scratch.row_data + slot * std::int64_t{2 * BM}, 2 * BM * 4, sm.full[s]);
                }
            }
        }
        const int s = count % Tile::stages;
        sm.free[s].wait((count / Tile::stages & 1) ^ 1);
        ++count;
        round = sm.item.round + 1;
        __syncwarp();
        if (lane == 0) sm.info[s].slot = -1, sm.full[s].arrive();
    }
}

/// Step 8, by a thread for each of the two buffers: while one's add is on its way to memory the other takes the next
/// block.
template <class Tile>
__device__ __forceinline__ void backward_adder(typename Tile::shared& sm, const backward_scratch& scratch, int buffer) {
    for (int count = 0;; ++count) {
        sm.sum_full[buffer].wait(count & 1);
        const int slot = sm.sum_slot[buffer], order = sm.sum_order[buffer];
        if (slot < 0) break;
        int* const turn = scratch.turns + slot;
        float* const to = scratch.sums + static_cast<std::int64_t>(slot) * Tile::sum_count;
        wait_turn(turn, order);
        if (order == 0)
            store_floats(to, sm.sum[buffer], Tile::sum_count * 4);
        else
            add_floats(to, sm.sum[buffer], Tile::sum_count * 4);
        commit_stores();
        wait_stores_read<0>();
        sm.sum_free[buffer].arrive();
        wait_stores_done<0>();
        pass_turn(turn, order + 1);
    }
}
/// The last message to each adder, after `sent` blocks: no more.
template <class Tile>
__device__ __forceinline__ void end_adders(typename Tile::shared& sm, int lane, int sent) {
    for (int end = sent + 2; sent < end; ++sent) {
        const int buffer = sent % 2;
        sm.sum_free[buffer].wait((sent / 2 & 1) ^ 1);
        if (threadIdx.x % 128 == 0) sm.sum_slot[buffer] = -1;
        __syncwarp();
        if (lane == 0) sm.sum_full[buffer].arrive();
    }
}

/// Step 7 by a warpgroup of its own, which hands the blocks on as step 8 says.
template <class Tile>
__device__ __forceinline__ void backward_sums(typename Tile::shared& sm) {
    constexpr int D = Tile::dim, BN = Tile::key_block;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int in_group = static_cast<int>(threadIdx.x) % 128;
    int count = 0, sum_count = 0;
    for (int round = 0;; ++round) {
        sm.kv_full.wait(round & 1);
        if (sm.item.n < 0) break;
        for (;; ++count) {
            const int buffer = count % 2;
            sm.ds_full[buffer].wait(count / 2 & 1);
            const int slot = __reduce_min_sync(~0u, sm.ds_slot[buffer]), order = sm.ds_order[buffer];
            if (slot < 0) break;
            const int to = sum_count % 2;
            sm.sum_free[to].wait((sum_count / 2 & 1) ^ 1);
            ++sum_count;
            for (int part = 0; part < D / 64; ++part) {
                float dq[32];
                const std::uint64_t ds_mn = operand(sm.ds[buffer]), k_columns = operand(sm.k + part * BN * 128);
                wgmma_fence();
#pragma unroll
                for (int kk = 0; kk < BN / 16; ++kk)
                    wgmma<64>::shared<major::mn, major::mn>(dq, advance(ds_mn, kk * 2048),
                                                            advance(k_columns, kk * 2048), kk != 0);
                wgmma_commit();
                wgmma_wait<0>();
                pin(dq);
                float* const at = sm.sum[to] + part * 4096 + in_group * 4;
#pragma unroll
                for (int i = 0; i < 8; ++i)
                    *reinterpret_cast<float4*>(at + i * 512) = {dq[4 * i], dq[4 * i + 1], dq[4 * i + 2], dq[4 * i + 3]};
            }
            if (in_group == 0) sm.sum_slot[to] = slot, sm.sum_order[to] = order;
            fence_async_shared();
            sm.ds_free[buffer].arrive();
            __syncwarp();
            if (lane == 0) sm.sum_full[to].arrive();
        }
        sm.ds_free[count % 2].arrive();
        sm.kv_free.arrive();
        __syncwarp();
        if (lane == 0) sm.sums_done.arrive();
        ++count;
    }
    end_adders<Tile>(sm, lane, sum_count);
}

/// Step 5: P = exp2(c S - lse), in place of S^T and rounded. A thread has keys l / 4 and eight below of its warp's
/// sixteen, queries 8 j + 2 (l % 4) and the next.
template <class Tile>
__device__ __forceinline__ void recomputed_weights(std::uint32_t (&p)[Tile::query_block / 16][4],
                                                   float (&s)[Tile::query_block / 2], const float* log_sums, float c,
                                                   int lane) {
#pragma unroll
    for (int j = 0; j < Tile::query_block / 8; ++j) {
        const float2 lse = *reinterpret_cast<const float2*>(&log_sums[8 * j + lane % 4 * 2]);
        s[4 * j] = exp2_fast(s[4 * j] * c - lse.x), s[4 * j + 1] = exp2_fast(s[4 * j + 1] * c - lse.y);
        s[4 * j + 2] = exp2_fast(s[4 * j + 2] * c - lse.x), s[4 * j + 3] = exp2_fast(s[4 * j + 3] * c - lse.y);
    }
#pragma unroll
    for (int i = 0; i < Tile::query_block / 4; ++i) p[i / 4][i % 4] = pack_bf16(s[2 * i], s[2 * i + 1]);
}
/// Step 6: dS = P (dP - D), rounded.
template <class Tile>
__device__ __forceinline__ void logit_gradients(std::uint32_t (&ds)[Tile::query_block / 16][4],
                                                const float (&p)[Tile::query_block / 2],
                                                const float (&dp)[Tile::query_block / 2], const float* drops,
                                                int lane) {
#pragma unroll
    for (int j = 0; j < Tile::query_block / 8; ++j) {
        const float2 drop = *reinterpret_cast<const float2*>(&drops[8 * j + lane % 4 * 2]);
        ds[j / 2][j % 2 * 2] = pack_bf16(p[4 * j] * (dp[4 * j] - drop.x), p[4 * j + 1] * (dp[4 * j + 1] - drop.y));
        ds[j / 2][j % 2 * 2 + 1] =
            pack_bf16(p[4 * j + 2] * (dp[4 * j + 2] - drop.x), p[4 * j + 3] * (dp[4 * j + 3] - drop.y));
    }
}

/// Steps 2 to 9: what each warp does. Those of a function above are called here.
template <class Tile>
__device__ __forceinline__ void attention_backward_body(const CUtensorMap& q_map, const CUtensorMap& k_map,
                                                        const CUtensorMap& v_map, const CUtensorMap& grad_o_map,
                                                        const CUtensorMap& grad_k_map, const CUtensorMap& grad_v_map,
                                                        const attention_view& a, const backward_scratch& scratch,
                                                        const backward_schedule& schedule) {
    constexpr int D = Tile::dim, BM = Tile::query_block, BN = Tile::key_block, chunks = D / 64;
    extern __shared__ __align__(1024) unsigned char raw[];  // swizzling needs the alignment
    auto& sm = *reinterpret_cast<typename Tile::shared*>(raw);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    // Every thread that reads a stage, an item or a message arrives itself, not one for its warp: the race checker
    // follows only that.
    if (threadIdx.x == 0) {
        sm.kv_full.init(1), sm.kv_free.init(Tile::apart ? 384 : 256);
        for (int s = 0; s < 2; ++s) sm.sum_full[s].init(Tile::apart ? 4 : 8), sm.sum_free[s].init(1);
        for (int s = 0; s < 2; ++s) sm.ds_full[s].init(8), sm.ds_free[s].init(128);
        sm.sums_done.init(4);
        for (int s = 0; s < Tile::stages; ++s) sm.full[s].init(1), sm.free[s].init(256);
        fence_barrier_init();
    }
    __syncthreads();
    if (warp < 4) {
        give_registers<Tile::producer_registers>();
        if (warp == 0) {
            backward_producer<Tile>(sm, q_map, k_map, v_map, grad_o_map, a, scratch, schedule);
        } else if (warp <= 2 && lane == 0) {
            backward_adder<Tile>(sm, scratch, warp - 1);
        }
        return;
    }

    if (Tile::apart && warp >= 12) {
        take_registers_or_give<Tile::sum_registers, 128>();
        backward_sums<Tile>(sm);
        return;
    }

    // 4 to 9. Consumers.
    take_registers<Tile::consumer_registers>();
    const int group = warp / 4 - 1, in_group = static_cast<int>(threadIdx.x) % 128;
    const int own = 1 + group, both = 3;
    const float c = a.scale * log2e;
    const std::uint64_t k_rows = operand(sm.k + group * 64 * 128), v_rows = operand(sm.v + group * 64 * 128);
    const std::uint64_t k_columns = operand(sm.k + group * Tile::sum_columns * (D == 128 ? BN * 2 : 2));
    int count = 0, sum_count = 0;

    for (int round = 0;; ++round) {
        sm.kv_full.wait(round & 1);
        if (sm.item.n < 0) break;
        float grad_k[D / 2], grad_v[D / 2], s[BM / 2], dp[BM / 2];
        std::uint32_t p[BM / 16][4];
#pragma unroll
        for (int i = 0; i < D / 2; ++i) grad_k[i] = grad_v[i] = 0;

        const auto clear_rows = [&](unsigned char* tile, int rows, int from) {
            for (int r = max(from, 0) + in_group / 8 + group * 16; r < rows; r += 32)
                for (int chunk = 0; chunk < chunks; ++chunk)
                    *reinterpret_cast<uint4*>(tile + (chunk * rows + r) * 128 + in_group % 8 * 16) = uint4{};
        };
        const auto issue_s = [&](int stage) {
            const std::uint64_t q = operand(sm.q[stage]);
#pragma unroll
            for (int kk = 0; kk < D / 16; ++kk)
                wgmma<BM>::template shared<major::k, major::k>(s, advance(k_rows, kk / 4 * BN * 128 + kk % 4 * 32),
                                                               advance(q, kk / 4 * BM * 128 + kk % 4 * 32), kk != 0);
            wgmma_commit();
        };
        // The next query block; whether there is one. Zeros for its dead rows.
        const auto next = [&] {
            const int stage = count % Tile::stages;
            sm.full[stage].wait(count / Tile::stages & 1);
            // A warp-wide reduction: the compiler then knows that all threads agree and keeps products asynchronous.
            if (__reduce_min_sync(~0u, sm.info[stage].slot) < 0) return false;
            const int live = sm.item.live_queries - sm.info[stage].row;
            if (live < BM && sm.item.live_queries < a.queries.capacity) {
                clear_rows(sm.q[stage], BM, live);
                clear_rows(sm.grad_o[stage], BM, live);
                fence_async_shared();
                named_sync(both, 256);
            }
            return true;
        };

        const int live = sm.item.live_keys - sm.item.n * BN;
        if (live < BN && sm.item.live_keys < a.keys.capacity) {
            clear_rows(sm.k, BN, live);
            clear_rows(sm.v, BN, live);
            fence_async_shared();
            named_sync(both, 256);
        }

        // 4. S^T of the first block; of the others it is issued ahead, in step 7, if only to be thrown away after the
        // last: a branch around it would make the compiler wait for every product.
        bool more = next();
        wgmma_fence();
        issue_s(count % Tile::stages);
        wgmma_wait<0>();
        pin(s);
        while (more) {
            const int stage = count % Tile::stages;
            const auto info = sm.info[stage];
            const std::uint64_t grad_o_k = operand(sm.grad_o[stage]);
            const std::uint64_t grad_o_mn = operand(sm.grad_o[stage], BM * 128), q_mn = operand(sm.q[stage], BM * 128);
            // 4. dP^T.
            wgmma_fence();
#pragma unroll
            for (int kk = 0; kk < D / 16; ++kk)
                wgmma<BM>::template shared<major::k, major::k>(dp, advance(v_rows, kk / 4 * BN * 128 + kk % 4 * 32),
                                                               advance(grad_o_k, kk / 4 * BM * 128 + kk % 4 * 32),
                                                               kk != 0);
            wgmma_commit();

            // 5. P and grad_v.
            if (!info.full) {
                const auto item = sm.item;
                const int key = item.n * BN + (this_thread() - 128) / 32 * 16 + lane / 4;  // S^T rows: this and 8 below
#pragma unroll
                for (int j = 0; j < BM / 8; ++j)
#pragma unroll
                    for (int e = 0; e < 2; ++e) {
                        const key_range see =
                            a.visible(item.b, info.row + 8 * j + lane % 4 * 2 + e, item.live_queries, item.live_keys);
                        if (key < see.first || key > see.last) s[4 * j + e] = -INFINITY;
                        if (key + 8 < see.first || key + 8 > see.last) s[4 * j + 2 + e] = -INFINITY;
                    }
            }
            recomputed_weights<Tile>(p, s, sm.row_data[stage][0], c, lane);
            wgmma_fence();
#pragma unroll
            for (int kk = 0; kk < BM / 16; ++kk)
                wgmma<D>::template registers<major::mn>(grad_v, p[kk], advance(grad_o_mn, kk * 2048), true);
            wgmma_commit();
            wgmma_wait<1>();
            pin(dp);

            // 6. dS and grad_k.
            std::uint32_t ds[BM / 16][4];
            logit_gradients<Tile>(ds, s, dp, sm.row_data[stage][1], lane);
            unsigned char* const ds_tile = sm.ds[sum_count % 2];
            if (Tile::apart) sm.ds_free[sum_count % 2].wait((sum_count / 2 & 1) ^ 1);
            const int ds_row = group * 64 + warp % 4 * 16 + lane % 16;
#pragma unroll
            for (int i = 0; i < BM / 16; ++i) {
                const int column = 2 * i + lane / 16;  // in units of 8 queries
                store_matrices(ds_tile + (column / 8 * BN + ds_row) * 128 + (column % 8 ^ ds_row % 8) * 16, ds[i]);
            }
            wgmma_fence();
#pragma unroll
            for (int kk = 0; kk < BM / 16; ++kk)
                wgmma<D>::template registers<major::mn>(grad_k, ds[kk], advance(q_mn, kk * 2048), true);
            wgmma_commit();
            fence_async_shared();
            if constexpr (Tile::apart) {  // dS to the third warpgroup (7), S^T of the next block (4)
                if (threadIdx.x == 128) sm.ds_slot[sum_count % 2] = info.slot, sm.ds_order[sum_count % 2] = info.order;
                __syncwarp();
                if (lane == 0) sm.ds_full[sum_count % 2].arrive();
                ++sum_count;
                ++count;
                more = next();
                wgmma_fence();
                issue_s(count % Tile::stages);
                wgmma_wait<1>();
                pin(grad_k);
                pin(grad_v);
                sm.free[stage].arrive();
                wgmma_wait<0>();
                pin(s);
                continue;
            }
            named_sync(both, 256);

            // 7. grad_q of this block, S^T of the next.
            float dq[Tile::sum_columns / 2];
            const std::uint64_t ds_mn = operand(ds_tile);
            wgmma_fence();
#pragma unroll
            for (int kk = 0; kk < BN / 16; ++kk)
                wgmma<Tile::sum_columns>::template shared<major::mn, major::mn>(dq, advance(ds_mn, kk * 2048),
                                                                                advance(k_columns, kk * 2048), kk != 0);
            wgmma_commit();
            wgmma_wait<1>();
            pin(grad_k);
            pin(grad_v);
            sm.free[stage].arrive();
            ++count;
            more = next();
            wgmma_fence();
            issue_s(count % Tile::stages);
            wgmma_wait<1>();
            pin(dq);

            // 8. Hand the block to the adder.
            const int buffer = sum_count % 2;
            sm.sum_free[buffer].wait((sum_count / 2 & 1) ^ 1);
            ++sum_count;
            float* const to = sm.sum[buffer] + group * Tile::sum_count / 2 + in_group * 4;
#pragma unroll
            for (int i = 0; i < Tile::sum_columns / 8; ++i)
                *reinterpret_cast<float4*>(to + i * 512) = {dq[4 * i], dq[4 * i + 1], dq[4 * i + 2], dq[4 * i + 3]};
            if (threadIdx.x == 128) sm.sum_slot[buffer] = info.slot, sm.sum_order[buffer] = info.order;
            fence_async_shared();
            __syncwarp();
            if (lane == 0) sm.sum_full[buffer].arrive();
            wgmma_wait<0>();
            pin(s);
        }

        // 9. All are done with k and v: their place takes grad_k and grad_v on the way out.
        if (Tile::apart) {
            sm.ds_free[sum_count % 2].wait((sum_count / 2 & 1) ^ 1);
            if (threadIdx.x == 128) sm.ds_slot[sum_count % 2] = -1;
            __syncwarp();
            if (lane == 0) sm.ds_full[sum_count % 2].arrive();
            ++sum_count;
        }
        named_sync(both, 256);
        if (Tile::apart) sm.sums_done.wait(round & 1);
        sm.free[count % Tile::stages].arrive();
        ++count;
        if (schedule.each < schedule.group_size && !add_parts<Tile>(grad_k, grad_v, sm.item, a, scratch, schedule)) {
            sm.kv_free.arrive();
            continue;
        }
        const int out_thread = this_thread(), row = out_thread % 128 / 32 * 16 + out_thread % 16,
                  half = out_thread % 32 / 16;
        unsigned char* const k_out = sm.k + group * 64 * D * 2;  // [dim / 64][64][64]
        unsigned char* const v_out = sm.v + group * 64 * D * 2;
#pragma unroll
        for (int i = 0; i < D / 16; ++i) {
            std::uint32_t k_part[4], v_part[4];
#pragma unroll
            for (int u = 0; u < 4; ++u) {
                const int e = 8 * i + 2 * u;
                k_part[u] = pack_bf16(grad_k[e] * a.scale, grad_k[e + 1] * a.scale);
                v_part[u] = pack_bf16(grad_v[e], grad_v[e + 1]);
            }
            const int column = 2 * i + half, at = (column / 8 * 64 + row) * 128 + (column % 8 ^ row % 8) * 16;
            store_matrices(k_out + at, k_part);
            store_matrices(v_out + at, v_part);
        }
        fence_async_shared();
        named_sync(own, 128);
        if (in_group == 0) {
            const auto item = sm.item;
            store_tile(grad_k_map, k_out, item.n * BN + group * 64, item.kv_head * chunks, item.b);
            store_tile(grad_v_map, v_out, item.n * BN + group * 64, item.kv_head * chunks, item.b);
            commit_stores();
            wait_stores_read<0>();
        }
        sm.kv_free.arrive();
    }
    if (in_group == 0) wait_stores_done<0>();
    if (!Tile::apart) end_adders<Tile>(sm, lane, sum_count);
}

template <class Tile>
__global__ void __launch_bounds__(Tile::threads, 1)
    attention_backward_kernel(const __grid_constant__ CUtensorMap q_map, const __grid_constant__ CUtensorMap k_map,
                              const __grid_constant__ CUtensorMap v_map, const __grid_constant__ CUtensorMap grad_o_map,
                              const __grid_constant__ CUtensorMap grad_k_map,
                              const __grid_constant__ CUtensorMap grad_v_map, const attention_view a,
                              const backward_scratch scratch, const backward_schedule schedule) {
    let_next_kernel_start();  // only when all blocks are on the device, so that nobody takes the place of one in turn
    if constexpr (SDEPTH_HOPPER_CODE)
        attention_backward_body<Tile>(q_map, k_map, v_map, grad_o_map, grad_k_map, grad_v_map, a, scratch, schedule);
    else
        __trap();  // see require_hopper
}

/// Backward attention on one stream but for the last step; `scratch` has backward_layout bytes, 256-byte aligned, with
/// any content. Returns where it holds what.
template <class Tile>
backward_scratch attention_backward_launch(const AttentionBackwardArgs<__nv_bfloat16>& g, void* scratch,
                                           cudaStream_t stream) {
    const AttentionArgs<__nv_bfloat16>& a = g.forward;
    int device = 0, processors = 0;
    check(cudaGetDevice(&device), "attention_backward");
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "attention_backward");
    backward_scratch s{};
    backward_layout<Tile>(a, scratch, s);
    const attention_view view(a);
    const int Tq = a.queries.capacity, Tk = a.keys.capacity, o_row = a.heads * a.head_dim;
    backward_schedule schedule{};
    schedule.group_size = a.heads / a.kv_heads;
    schedule.each = heads_apart<Tile>(a) ? 1 : schedule.group_size;
    schedule.columns = a.batch * a.heads / schedule.each;
    schedule.items = s.key_blocks * schedule.columns;

    attention_prepare<Tile>(g, s, stream);

    const CUtensorMap q = head_tile_map(a.q, a.batch, Tq, a.heads, Tile::dim, a.q_stride(), Tile::query_block);
    const CUtensorMap k = head_tile_map(a.k, a.batch, Tk, a.kv_heads, Tile::dim, a.kv_stride(), Tile::key_block);
    const CUtensorMap v = head_tile_map(a.v, a.batch, Tk, a.kv_heads, Tile::dim, a.kv_stride(), Tile::key_block);
    const CUtensorMap grad_o = head_tile_map(g.grad_o, a.batch, Tq, a.heads, Tile::dim, o_row, Tile::query_block);
    const CUtensorMap grad_k = head_tile_map(g.grad_k, a.batch, Tk, a.kv_heads, Tile::dim, a.kv_stride(), 64);
    const CUtensorMap grad_v = head_tile_map(g.grad_v, a.batch, Tk, a.kv_heads, Tile::dim, a.kv_stride(), 64);
    const int bytes = static_cast<int>(sizeof(typename Tile::shared));
    check(cudaFuncSetAttribute(attention_backward_kernel<Tile>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
          "attention_backward");
    // A plain start: prepared_finish_kernel, behind it, reads before its wait.
    attention_backward_kernel<Tile><<<std::min(processors, schedule.items), Tile::threads, bytes, stream>>>(
        q, k, v, grad_o, grad_k, grad_v, view, s, schedule);
    check(cudaGetLastError(), "attention_backward");
    return s;
}

}  // namespace sdepth::inline v0::on_cuda
