// SPDX-License-Identifier: MIT
// What the attention kernels share: run-time sizes, which key blocks a block of query rows sees, turns of blocks of
// threads at one place in memory. Rank 5.
#pragma once

#include <cuda_runtime.h>

#include <climits>

#include "sdepth/ops/attention.hpp"

namespace sdepth::inline v0::on_cuda {

/// Sizes and visibility as kernels receive them; see AttentionArgs.
struct attention_view {
    int batch, heads, kv_heads;
    rows queries, keys;
    bool causal;
    int window;
    const int* first;
    const int* last;
    float scale;

    template <class T>
    explicit attention_view(const AttentionArgs<T>& a)
        : batch(a.batch),
          heads(a.heads),
          kv_heads(a.kv_heads),
          queries(a.queries),
          keys(a.keys),
          causal(a.causal),
          window(a.window),
          first(a.first),
          last(a.last),
          scale(static_cast<float>(a.scale)) {}

    __device__ key_range visible(int b, int i, int live_queries, int live_keys) const {
        const long row = static_cast<long>(b) * queries.capacity;
        return visible_keys(i, live_queries, live_keys, causal, window, first ? first + row : nullptr,
                            last ? last + row : nullptr);
    }
};

/// Key blocks that some row of a query block sees: [begin, end); those that every row sees in full (rows that see
/// nothing apart): [full_begin, full_end).
struct block_range {
    int begin, end, full_begin, full_end;
    __device__ bool empty() const { return begin >= end; }
    __device__ bool full(int n) const { return n >= full_begin && n < full_end; }
};

/// Ranges of query rows row .. row + query_block - 1; called by a whole warp.
template <int query_block, int key_block>
__device__ inline block_range blocks_of(const attention_view& a, int b, int row, int live_queries, int live_keys) {
    int least = INT_MAX, last_first = -1, first_last = INT_MAX, most = -1;
#pragma unroll
    for (int u = 0; u < query_block; u += 32) {
        const key_range see = a.visible(b, row + u + static_cast<int>(threadIdx.x % 32), live_queries, live_keys);
        if (see.last < see.first) continue;
        least = min(least, see.first), last_first = max(last_first, see.first);
        first_last = min(first_last, see.last), most = max(most, see.last);
    }
    least = __reduce_min_sync(~0u, least), last_first = __reduce_max_sync(~0u, last_first);
    first_last = __reduce_min_sync(~0u, first_last), most = __reduce_max_sync(~0u, most);
    if (most < 0) return {0, 0, 0, 0};
    return {least / key_block, most / key_block + 1, (last_first + key_block - 1) / key_block,
            (first_last + 1) / key_block};
}

/// Words that blocks of threads tell each other (PTX ISA 8.7, "memory consistency model").
__device__ inline int load_relaxed(const int* from) {
    int x;
    asm volatile("ld.relaxed.gpu.global.b32 %0, [%1];" : "=r"(x) : "l"(from) : "memory");
    return x;
}
__device__ inline int load_acquire(const int* from) {
    int x;
    asm volatile("ld.acquire.gpu.global.b32 %0, [%1];" : "=r"(x) : "l"(from) : "memory");
    return x;
}
__device__ inline void store_relaxed(int* to, int x) {
    asm volatile("st.relaxed.gpu.global.b32 [%0], %1;" ::"l"(to), "r"(x) : "memory");
}

/// Turns of blocks of threads at one place in memory: returns once `turn` is `mine`, and what the earlier ones did
/// (by the copy engine too) is visible; passes on after this thread's own work.
__device__ inline void wait_turn(const int* turn, int mine) {
    while (load_acquire(turn) != mine) {
    }
    asm volatile("fence.proxy.async;" ::: "memory");
}
__device__ inline void pass_turn(int* turn, int next) {
    asm volatile("fence.proxy.async;" ::: "memory");
    asm volatile("st.release.gpu.global.b32 [%0], %1;" ::"l"(turn), "r"(next) : "memory");
}

}  // namespace sdepth::inline v0::on_cuda
