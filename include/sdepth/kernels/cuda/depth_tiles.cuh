// SPDX-License-Identifier: MIT
// What the kernels of MoDA's depth branch share: sizes, the stream of a warp's slots through shared memory, operands of
// the tensor cores. Rank 5.
#pragma once

#include <cuda_bf16.h>

#include <cstdint>

#include "sdepth/kernels/cuda/fragments.cuh"
#include "sdepth/kernels/cuda/mbarrier.cuh"
#include "sdepth/kernels/cuda/tma.cuh"
#include "sdepth/ops/depth_attention.hpp"

namespace sdepth::inline v0::on_cuda {

/// Tile of the depth kernels: head size, query heads of a group in units of eight. Reading alone is fastest with large
/// pieces; where gradients are written too, with few warps, so that a token's heads meet in memory.
template <int head_dim, int head_tiles, bool writes>
struct depth_tile {
    static constexpr int dim = head_dim, tiles = head_tiles, parts = dim / 64;
    static constexpr bool small = dim == 64 && tiles == 1;
    static constexpr int warps = !small ? 6 : writes ? 8 : 12, threads = 32 * warps;
    static constexpr int stages = !small ? 2 : writes ? 3 : 1;
    static constexpr int chunk = (small && writes ? 4096 : 8192) / (2 * dim);  // slots of a stage
    static constexpr int stage_bytes = 2 * chunk * dim * 2;

    struct shared {
        alignas(1024) unsigned char slot[warps][stages][stage_bytes];  // [K, V][dim / 64][chunk][64]
        mbarrier full[warps][stages];
    };
};

/// Sizes as the kernels receive them.
struct depth_view {
    int batch, heads, kv_heads, slots, used, q_stride;
    rows tokens;
    const int* ids;
    int sequence;
    const std::uint8_t* mask;
    float scale;

    explicit depth_view(const DepthAttentionArgs<__nv_bfloat16>& a)
        : batch(a.batch),
          heads(a.heads),
          kv_heads(a.kv_heads),
          slots(a.slots),
          used(a.used),
          q_stride(a.q_stride()),
          tokens(a.tokens),
          ids(a.ids),
          sequence(a.sequence),
          mask(a.mask),
          scale(static_cast<float>(a.scale)) {}
    __device__ int group() const { return heads / kv_heads; }
    __device__ bool live(int token) const { return token % tokens.capacity < tokens.of(token / tokens.capacity); }
    /// Row whose slots a token reads. Ids of dead tokens may be anything.
    __device__ int row(int token) const {
        if (ids == nullptr) return token;
        return token / tokens.capacity * sequence + (live(token) ? ids[token] : 0);
    }
    /// Where keys of a slot lie, in units of head_dim; values follow.
    __device__ std::int64_t key(int row, int slot, int kv) const {
        return ((static_cast<std::int64_t>(row) * slots + slot) * kv_heads + kv) * 2;
    }
};

/// Step 1: the stream of chunks of one warp.
template <class Tile>
class depth_stream {
  public:
    __device__ depth_stream(typename Tile::shared& shared, const CUtensorMap& map, const depth_view& a)
        : sm_(shared), map_(map), a_(a), chunks_((a.used + Tile::chunk - 1) / Tile::chunk) {
        const int warps = static_cast<int>(gridDim.x) * Tile::warps;
        first_ = static_cast<int>(blockIdx.x) * Tile::warps + warp();
        total_ = a.batch * a.tokens.capacity * a.kv_heads;
        stride_ = warps;
        if (lane() == 0) {
            for (int s = 0; s < Tile::stages; ++s) sm_.full[warp()][s].init(1);
            fence_barrier_init();
        }
        __syncwarp();
        for (int i = 0; i < Tile::stages; ++i) issue();
    }

    /// Task `round` of this warp: token and KV head; false if there are no more.
    __device__ bool task(int round, int& token, int& kv) const {
        const int id = first_ + round * stride_;
        token = id / a_.kv_heads, kv = id % a_.kv_heads;
        return id < total_;
    }
    __device__ int chunks() const { return chunks_; }

    /// The next chunk, [K, V][dim / 64][chunk][64], slots `from` and further of `row`. `seen`: which of them count,
    /// none for a dead token; the others become zero.
    __device__ unsigned char* get(int row, bool live, int from, unsigned (&seen)[2]) {
        const int s = taken_ % Tile::stages;
        sm_.full[warp()][s].wait(taken_ / Tile::stages & 1);
        unsigned char* const tile = sm_.slot[warp()][s];
        bool masked = false;
#pragma unroll
        for (int half = 0; half < 2; ++half) {
            const int slot = from + 32 * half + lane();
            const bool there = 32 * half < Tile::chunk && slot < a_.used;
            const bool on =
                there && live && (a_.mask == nullptr || a_.mask[static_cast<std::int64_t>(row) * a_.slots + slot] != 0);
            seen[half] = __ballot_sync(~0u, on);
            masked |= __any_sync(~0u, there && !on);
        }
        if (masked) {
            for (int r = 0; r < Tile::chunk; ++r)
                if (((r < 32 ? seen[0] : seen[1]) >> r % 32 & 1) == 0)
                    for (int c = lane(); c < 2 * Tile::parts * 8; c += 32)
                        *reinterpret_cast<uint4*>(tile + (c / 8 * Tile::chunk + r) * 128 + c % 8 * 16) = uint4{};
            fence_async_shared();
            __syncwarp();
        }
        return tile;
    }
    /// Sends the chunk, overwritten by now, to where `map` says.
    __device__ void store(const CUtensorMap& map, int chunk, int token, int kv) {
        fence_async_shared();
        __syncwarp();
        if (lane() == 0) {
            store_box_5d(map, sm_.slot[warp()][taken_ % Tile::stages], 0, chunk * Tile::chunk, 0, kv, token);
            commit_stores();
            wait_stores_read<0>();
        }
    }
    /// Done with it.
    __device__ void release() {
        __syncwarp();
        ++taken_;
        issue();
    }

    /// This lane's place in the 16 x 16 piece at slots 16 m and columns 16 kk of K (which = 0) or V (1).
    __device__ static const unsigned char* piece(const unsigned char* tile, int which, int m, int kk) {
        const int r = 16 * m + lane() % 16, c = 2 * (kk % 4) + lane() / 16;
        return tile + ((which * Tile::parts + kk / 4) * Tile::chunk + r) * 128 + (c ^ r % 8) * 16;
    }

    __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }
    __device__ static int warp() { return static_cast<int>(threadIdx.x) / 32; }

  private:
    // Asks for the chunk `issued_` of the stream, if there is one.
    __device__ void issue() {
        int token, kv;
        if (chunks_ == 0 || !task(issued_ / chunks_, token, kv)) return;
        const int s = issued_ % Tile::stages;
        if (lane() == 0) {
            mbarrier& full = sm_.full[warp()][s];
            full.arrive_expect(Tile::stage_bytes);
            load_box_5d(sm_.slot[warp()][s], map_, full, 0, issued_ % chunks_ * Tile::chunk, 0, kv, a_.row(token));
        }
        ++issued_;
    }

    typename Tile::shared& sm_;
    const CUtensorMap& map_;
    const depth_view& a_;
    int chunks_, first_, total_, stride_, issued_ = 0, taken_ = 0;
};

/// Operand B of step 2 for heads 8 u .. 8 u + 7: column l / 4 is a head, rows are dims. Heads that are not there are 0.
template <class Tile>
__device__ inline void load_heads(std::uint32_t (&b)[Tile::tiles][Tile::dim / 8], const __nv_bfloat16* row, int group) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int u = 0; u < Tile::tiles; ++u)
#pragma unroll
        for (int i = 0; i < Tile::dim / 8; ++i) {
            const int head = 8 * u + lane / 4;
            b[u][i] = head < group
                          ? *reinterpret_cast<const std::uint32_t*>(row + head * Tile::dim + 8 * i + lane % 4 * 2)
                          : 0u;
        }
}

/// Eight dims 64 part + 8 (l / 4) of heads 8 u + 2 (l % 4) and the next; zero for heads that are not there.
template <int D>
__device__ inline void load_pair(uint4& even, uint4& odd, const __nv_bfloat16* row, int group, int u, int part) {
    const int lane = static_cast<int>(threadIdx.x) % 32, head = 8 * u + lane % 4 * 2;
    const __nv_bfloat16* at = row + head * D + 64 * part + lane / 4 * 8;
    even = head < group ? *reinterpret_cast<const uint4*>(at) : uint4{};
    odd = head + 1 < group ? *reinterpret_cast<const uint4*>(at + D) : uint4{};
}
/// Those as operand B of step 6: b[j] pairs the two heads at dim 64 part + 8 (l / 4) + j.
__device__ inline void interleave(std::uint32_t (&b)[8], const uint4& even, const uint4& odd) {
    const std::uint32_t x[4] = {even.x, even.y, even.z, even.w}, y[4] = {odd.x, odd.y, odd.z, odd.w};
#pragma unroll
    for (int i = 0; i < 4; ++i)
        b[2 * i] = __byte_perm(x[i], y[i], 0x5410), b[2 * i + 1] = __byte_perm(x[i], y[i], 0x7632);
}

/// Adds step 6's sums for one slot to its keys or values: this thread has dims 16 (l % 4) .. + 15 of a part of 64,
/// which begins at `part`; half = 0 for slot l / 4 of sixteen, 1 for the one eight below.
__device__ inline void add_slot_gradient(float* part, const float (&sum)[8][4], int half, float scale) {
    auto* const to = reinterpret_cast<float4*>(part) + static_cast<int>(threadIdx.x) % 4 * 4;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int e = 2 * half + i / 2, j = i % 2 * 4;
        float4 x = to[i];
        x.x += sum[j][e] * scale, x.y += sum[j + 1][e] * scale;
        x.z += sum[j + 2][e] * scale, x.w += sum[j + 3][e] * scale;
        to[i] = x;
    }
}

}  // namespace sdepth::inline v0::on_cuda
