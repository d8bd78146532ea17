// SPDX-License-Identifier: MIT
// Attention forward for sm_90a (wgmma and the copy engine), after FlashAttention-3. Visibility, sizes and live rows are
// run-time data; a kernel is a template of its tile only. Rank 5.
//
// One block of threads per multiprocessor: a producer warp that copies tiles into shared memory and `groups`
// warpgroups that each own 64 query rows of one head. Work item = query_block rows of one head of one sequence.
//
//  1. Order of work: heads in sets whose keys and values fit the L2 cache; within a set the query blocks with the most
//     visible keys first (causal), dealt to the blocks of threads there and back again, so that sums of lengths agree.
//  2. Producer: which key blocks does any row see? Copy q, then for key blocks from the last to the first k and v
//     through rings of `stages` tiles.
//  3. Consumer, first key block: S = q k^T, mask, row maximum m, P = exp2(c S - c m) in bf16, row sum.
//  4. Each further block: issue S' = q k'^T and then o += P v, let the next warpgroup issue its own, and while the
//     tensor cores work do the softmax of S'; then scale o by exp2(c m - c m').
//  5. The last o += P v; divide by the row sum; log-sum-exp = m scale + log(sum).
//  6. o through shared memory to the copy engine, which also cuts the tail.
//
// Dead rows: of q, their results are replaced; of k, their logits are replaced; of v, step 4 would multiply their bits
// by zero, so they are overwritten by zeros first.
#pragma once

#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>

#include "sdepth/kernels/cuda/attention_tiles.cuh"
#include "sdepth/kernels/cuda/error.cuh"
#include "sdepth/kernels/cuda/fragments.cuh"
#include "sdepth/kernels/cuda/mbarrier.cuh"
#include "sdepth/kernels/cuda/tma.cuh"
#include "sdepth/kernels/cuda/wgmma.cuh"

namespace sdepth::inline v0::on_cuda {

/// Tile of the forward kernel: what one instantiation is specialised for.
template <int head_dim, int warpgroups, int keys, int ring, bool take_turns>
struct forward_tile {
    static constexpr int dim = head_dim, groups = warpgroups, query_block = 64 * groups, key_block = keys;
    static constexpr int stages = ring, threads = 128 * (groups + 1);
    static constexpr bool turns = take_turns;  // warpgroups issue their products one after the other
    static constexpr int producer_registers = groups == 2 ? 24 : 32, consumer_registers = groups == 2 ? 240 : 160;
    static constexpr int q_bytes = query_block * dim * 2, kv_bytes = key_block * dim * 2;

    struct shared {
        alignas(1024) unsigned char q[q_bytes];  // [dim / 64][query_block][64]
        unsigned char o[q_bytes];                // [group][dim / 64][64][64]
        unsigned char k[stages][kv_bytes];       // [dim / 64][key_block][64]
        unsigned char v[stages][kv_bytes];       // [dim / 64][key_block][64]
        mbarrier q_full, q_free, k_full[stages], k_free[stages], v_full[stages], v_free[stages];
    };
};

/// Order of work (step 1).
struct forward_schedule {
    int query_blocks, set_heads, items;

    struct item {
        int b, head, row;
    };
    __device__ item at(int index, int heads, int batch, int query_block) const {
        const int per_set = set_heads * query_blocks, set = index / per_set, rest = index - set * per_set;
        const int in_set = min(set_heads, heads * batch - set * set_heads);
        const int block = query_blocks - 1 - rest / in_set, head = set * set_heads + rest % in_set;
        return {head / heads, head % heads, block * query_block};
    }
    /// The index of round r of this block of threads; past the end if there is none.
    __device__ int index(int round) const {
        const int grid = static_cast<int>(gridDim.x), me = static_cast<int>(blockIdx.x);
        return round * grid + (round % 2 == 0 ? me : grid - 1 - me);
    }
};

/// Step 2, by one warp.
template <class Tile>
__device__ __forceinline__ void forward_producer(typename Tile::shared& sm, const CUtensorMap& q_map,
                                                 const CUtensorMap& k_map, const CUtensorMap& v_map,
                                                 const CUtensorMap& o_map, const attention_view& a,
                                                 const forward_schedule& schedule) {
    constexpr int BM = Tile::query_block, BN = Tile::key_block, chunks = Tile::dim / 64;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    if (lane == 0) prefetch_map(q_map), prefetch_map(k_map), prefetch_map(v_map), prefetch_map(o_map);
    // Rings count tiles over all work items; a full turn of the ring flips the parity.
    int k_count = 0, v_count = 0, q_count = 0;
    const auto load = [&](const CUtensorMap& map, unsigned char(&ring)[Tile::stages][Tile::kv_bytes], mbarrier* full,
                          mbarrier* free, int& count, int n, int kv_head, int b) {
        const int s = count % Tile::stages;
        free[s].wait((count / Tile::stages & 1) ^ 1);
        if (lane == 0) {
            full[s].arrive_expect(Tile::kv_bytes);
            load_tile(ring[s], map, full[s], n * BN, kv_head * chunks, b);
        }
        ++count;
    };
    for (int round = 0; round * static_cast<int>(gridDim.x) < schedule.items; ++round) {
        const int index = schedule.index(round);
        if (index >= schedule.items) continue;
        const auto item = schedule.at(index, a.heads, a.batch, BM);
        const block_range see = blocks_of<BM, BN>(a, item.b, item.row, a.queries.of(item.b), a.keys.of(item.b));
        if (see.empty()) continue;
        const int kv_head = item.head / (a.heads / a.kv_heads);
        sm.q_free.wait((q_count & 1) ^ 1);
        if (lane == 0) {
            sm.q_full.arrive_expect(Tile::q_bytes);
            load_tile(sm.q, q_map, sm.q_full, item.row, item.head * chunks, item.b);
        }
        ++q_count;
        load(k_map, sm.k, sm.k_full, sm.k_free, k_count, see.end - 1, kv_head, item.b);
        for (int n = see.end - 2; n >= see.begin; --n) {
            load(k_map, sm.k, sm.k_full, sm.k_free, k_count, n, kv_head, item.b);
            load(v_map, sm.v, sm.v_full, sm.v_free, v_count, n + 1, kv_head, item.b);
        }
        load(v_map, sm.v, sm.v_full, sm.v_free, v_count, see.begin, kv_head, item.b);
    }
}

/// Steps 1 to 6: what each warp does. Steps 3 to 6 stand here.
template <class Tile>
__device__ __forceinline__ void attention_forward_body(const CUtensorMap& q_map, const CUtensorMap& k_map,
                                                       const CUtensorMap& v_map, const CUtensorMap& o_map,
                                                       const attention_view& a, const forward_schedule& schedule,
                                                       float* lse) {
    constexpr int D = Tile::dim, BM = Tile::query_block, BN = Tile::key_block, chunks = D / 64, G = Tile::groups;
    extern __shared__ __align__(1024) unsigned char raw[];  // swizzling needs the alignment
    auto& sm = *reinterpret_cast<typename Tile::shared*>(raw);
    const int warp = static_cast<int>(threadIdx.x) / 32, lane = static_cast<int>(threadIdx.x) % 32;
    if (threadIdx.x == 0) {
        sm.q_full.init(1), sm.q_free.init(4 * G);
        for (int s = 0; s < Tile::stages; ++s) {
            sm.k_full[s].init(1), sm.k_free[s].init(4 * G), sm.v_full[s].init(1), sm.v_free[s].init(4 * G);
        }
        fence_barrier_init();
    }
    __syncthreads();

    if (warp < 4) {
        give_registers<Tile::producer_registers>();
        if (warp == 0) forward_producer<Tile>(sm, q_map, k_map, v_map, o_map, a, schedule);
        return;
    }

    take_registers<Tile::consumer_registers>();
    const int group = warp / 4 - 1, in_group = static_cast<int>(threadIdx.x) % 128;
    const int turn = 1 + group, next_turn = 1 + (group + 1) % G, own = 1 + G + group, all = 1 + 2 * G;
    const float c = a.scale * log2e;
    if (Tile::turns && group == G - 1) named_arrive(1, 256);
    const std::uint64_t q_tile = operand(sm.q + group * 64 * 128);
    int k_count = 0, v_count = 0, q_count = 0;

    for (int round = 0; round * static_cast<int>(gridDim.x) < schedule.items; ++round) {
        const int index = schedule.index(round);
        if (index >= schedule.items) continue;
        const auto item = schedule.at(index, a.heads, a.batch, BM);
        const int live_queries = a.queries.of(item.b), live_keys = a.keys.of(item.b);
        const block_range see = blocks_of<BM, BN>(a, item.b, item.row, live_queries, live_keys);
        const int top_row = item.row + group * 64 + warp % 4 * 16 + lane / 4;  // this thread's rows: it and 8 below
        const auto sees = [&](int r) {
            return a.visible(item.b, top_row + 8 * r, a.queries.of(item.b), a.keys.of(item.b));
        };
        float o[D / 2], m[2] = {-INFINITY, -INFINITY}, sum[2] = {0, 0};

        if (see.empty()) {
#pragma unroll
            for (int i = 0; i < D / 2; ++i) o[i] = 0;
        } else {
            float s[BN / 2];
            std::uint32_t p[BN / 16][4];

            const auto issue_s = [&] {
                const std::uint64_t k_tile = operand(sm.k[k_count % Tile::stages]);
                wgmma_fence();
#pragma unroll
                for (int kk = 0; kk < D / 16; ++kk)
                    wgmma<BN>::template shared<major::k, major::k>(s, advance(q_tile, kk / 4 * BM * 128 + kk % 4 * 32),
                                                                   advance(k_tile, kk / 4 * BN * 128 + kk % 4 * 32),
                                                                   kk != 0);
                wgmma_commit();
            };
            const auto issue_o = [&](bool add) {
                const std::uint64_t v_tile = operand(sm.v[v_count % Tile::stages], BN * 128);
                wgmma_fence();
#pragma unroll
                for (int kk = 0; kk < BN / 16; ++kk)
                    wgmma<D>::template registers<major::mn>(o, p[kk], advance(v_tile, kk * 2048), add || kk != 0);
                wgmma_commit();
            };
            // Softmax of s for key block n; returns the factors for o.
            const auto softmax = [&](int n, float(&factor)[2]) {
                if (!see.full(n)) {
                    const key_range visible[2] = {sees(0), sees(1)};
                    const int column = n * BN + lane % 4 * 2;
#pragma unroll
                    for (int i = 0; i < BN / 2; ++i) {
                        const int r = i / 2 % 2, j = column + i / 4 * 8 + i % 2;
                        if (j < visible[r].first || j > visible[r].last) s[i] = -INFINITY;
                    }
                }
#pragma unroll
                for (int r = 0; r < 2; ++r) {
                    float top = m[r];
#pragma unroll
                    for (int i = 0; i < BN / 2; ++i)
                        if (i / 2 % 2 == r) top = fmaxf(top, s[i]);
                    top = fmaxf(top, __shfl_xor_sync(~0u, top, 1));
                    top = fmaxf(top, __shfl_xor_sync(~0u, top, 2));
                    const float shift = top == -INFINITY ? 0.f : top * c;
                    factor[r] = exp2_fast(m[r] * c - shift);
                    m[r] = top;
                    float part = 0;
#pragma unroll
                    for (int i = 0; i < BN / 2; ++i)
                        if (i / 2 % 2 == r) {
                            s[i] = exp2_fast(s[i] * c - shift);
                            part += s[i];
                        }
                    sum[r] = sum[r] * factor[r] + part;
                }
            };
            const auto round_p = [&] {
#pragma unroll
                for (int i = 0; i < BN / 4; ++i) p[i / 4][i % 4] = pack_bf16(s[2 * i], s[2 * i + 1]);
            };
            // Zeros for dead rows of v in the last block; all warpgroups take part.
            if (see.end * BN > live_keys && live_keys < a.keys.capacity) {
                const int stage = v_count % Tile::stages;
                sm.v_full[stage].wait(v_count / Tile::stages & 1);
                for (int r = live_keys - (see.end - 1) * BN + in_group / 8; r < BN; r += 16)
                    for (int chunk = 0; chunk < chunks; ++chunk)
                        *reinterpret_cast<uint4*>(sm.v[stage] + (chunk * BN + r) * 128 + in_group % 8 * 16) = uint4{};
                fence_async_shared();
                named_sync(all, 128 * G);
            }

            // 3. First key block.
            sm.q_full.wait(q_count & 1);
            ++q_count;
            sm.k_full[k_count % Tile::stages].wait(k_count / Tile::stages & 1);
            issue_s();
            wgmma_wait<0>();
            pin(s);
            if (lane == 0) sm.k_free[k_count % Tile::stages].arrive();
            ++k_count;
            float factor[2];
            softmax(see.end - 1, factor);
            round_p();

            // 4. Further key blocks.
            bool add = false;
            for (int n = see.end - 2; n >= see.begin; --n) {
                sm.k_full[k_count % Tile::stages].wait(k_count / Tile::stages & 1);
                if (Tile::turns) named_sync(turn, 256);
                issue_s();
                sm.v_full[v_count % Tile::stages].wait(v_count / Tile::stages & 1);
                issue_o(add);
                if (Tile::turns) named_arrive(next_turn, 256);
                wgmma_wait<1>();
                pin(s);
                if (lane == 0) sm.k_free[k_count % Tile::stages].arrive();
                ++k_count;
                softmax(n, factor);
                wgmma_wait<0>();
                pin(o);
                if (lane == 0) sm.v_free[v_count % Tile::stages].arrive();
                ++v_count;
#pragma unroll
                for (int i = 0; i < D / 2; ++i) o[i] *= factor[i / 2 % 2];
                round_p();
                add = true;
            }
            if (lane == 0) sm.q_free.arrive();

            // 5. Last block's values, sum over the four threads of a row.
            sm.v_full[v_count % Tile::stages].wait(v_count / Tile::stages & 1);
            issue_o(add);
#pragma unroll
            for (int r = 0; r < 2; ++r) {
                sum[r] += __shfl_xor_sync(~0u, sum[r], 1);
                sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
            }
            wgmma_wait<0>();
            pin(o);
            if (lane == 0) sm.v_free[v_count % Tile::stages].arrive();
            ++v_count;
        }

        bool blind[2];
#pragma unroll
        for (int r = 0; r < 2; ++r) {
            const int row = top_row + 8 * r;
            const key_range visible = sees(r);
            blind[r] = visible.last < visible.first;
            if (lane % 4 == 0 && row < a.queries.capacity)
                lse[(static_cast<long>(item.b) * a.queries.capacity + row) * a.heads + item.head] =
                    blind[r] ? -INFINITY : m[r] * a.scale + logf(sum[r]);
            sum[r] = 1.f / sum[r];
        }

        // 6. Store. Warp w writes rows 16 w .. 16 w + 15 of its group's tile; 16 columns a stmatrix.
        if (in_group == 0) wait_stores_read<0>();
        named_sync(own, 128);
        unsigned char* const o_tile = sm.o + group * 64 * D * 2;
        const int thread = this_thread(), row = thread % 128 / 32 * 16 + thread % 16, half = thread % 32 / 16;
#pragma unroll
        for (int i = 0; i < D / 16; ++i) {
            std::uint32_t part[4];
#pragma unroll
            for (int u = 0; u < 4; ++u) {
                const int e = 8 * i + 2 * u, r = u % 2;
                part[u] = blind[r] ? 0u : pack_bf16(o[e] * sum[r], o[e + 1] * sum[r]);
            }
            const int column = 2 * i + half;  // in units of 8 columns
            store_matrices(o_tile + (column / 8 * 64 + row) * 128 + (column % 8 ^ row % 8) * 16, part);
        }
        fence_async_shared();
        named_sync(own, 128);
        if (in_group == 0) {
            store_tile(o_map, o_tile, item.row + group * 64, item.head * chunks, item.b);
            commit_stores();
        }
    }
    if (in_group == 0) wait_stores_done<0>();
}

template <class Tile>
__global__ void __launch_bounds__(Tile::threads, 1)
    attention_forward_kernel(const __grid_constant__ CUtensorMap q_map, const __grid_constant__ CUtensorMap k_map,
                             const __grid_constant__ CUtensorMap v_map, const __grid_constant__ CUtensorMap o_map,
                             const attention_view a, const forward_schedule schedule, float* lse) {
    if constexpr (SDEPTH_HOPPER_CODE)
        attention_forward_body<Tile>(q_map, k_map, v_map, o_map, a, schedule, lse);
    else
        __trap();  // see require_hopper
}

/// Forward attention on one stream. Writes o and lse; needs no scratch.
template <class Tile>
void attention_forward_launch(const AttentionArgs<__nv_bfloat16>& a, cudaStream_t stream) {
    int device = 0, processors = 0, l2_bytes = 0;
    check(cudaGetDevice(&device), "attention_forward");
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "attention_forward");
    check(cudaDeviceGetAttribute(&l2_bytes, cudaDevAttrL2CacheSize, device), "attention_forward");
    const int o_row = a.heads * a.head_dim;
    const CUtensorMap q =
        head_tile_map(a.q, a.batch, a.queries.capacity, a.heads, Tile::dim, a.q_stride(), Tile::query_block);
    const CUtensorMap k =
        head_tile_map(a.k, a.batch, a.keys.capacity, a.kv_heads, Tile::dim, a.kv_stride(), Tile::key_block);
    const CUtensorMap v =
        head_tile_map(a.v, a.batch, a.keys.capacity, a.kv_heads, Tile::dim, a.kv_stride(), Tile::key_block);
    const CUtensorMap o = head_tile_map(a.o, a.batch, a.queries.capacity, a.heads, Tile::dim, o_row, 64);

    // Keys and values of a set of heads fill at most half of the L2 cache.
    forward_schedule schedule{};
    const long head_bytes = 4l * a.keys.capacity * Tile::dim;
    const int group = a.heads / a.kv_heads;
    schedule.query_blocks = (a.queries.capacity + Tile::query_block - 1) / Tile::query_block;
    schedule.set_heads = static_cast<int>(std::clamp<long>(l2_bytes / 2 / head_bytes, 1, a.batch * a.kv_heads)) * group;
    schedule.items = schedule.query_blocks * a.batch * a.heads;
    if (schedule.items == 0) return;

    const int bytes = static_cast<int>(sizeof(typename Tile::shared));
    check(cudaFuncSetAttribute(attention_forward_kernel<Tile>, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes),
          "attention_forward");
    attention_forward_kernel<Tile><<<std::min(processors, schedule.items), Tile::threads, bytes, stream>>>(
        q, k, v, o, attention_view(a), schedule, a.lse);
    check(cudaGetLastError(), "attention_forward");
}

}  // namespace sdepth::inline v0::on_cuda
