// SPDX-License-Identifier: MIT
// Row by row over a batch, one warp a row, 16 bytes a lane and load: the loop of every operation that moves each number
// once. Rank 5.
#pragma once

#include <string>

#include "sdepth/error.hpp"
#include "sdepth/kernels/cuda/launch.cuh"
#include "sdepth/kernels/cuda/vector.cuh"
#include "sdepth/rows.hpp"

namespace sdepth::inline v0::on_cuda {

/// A row of a batch: its number in memory, its sequence, its number there.
struct row_place {
    long long row;
    int sequence;
    int index;

    __device__ row_place(const batch_rows& rows, long long r)
        : row(r),
          sequence(static_cast<int>(static_cast<unsigned>(r) / static_cast<unsigned>(rows.each.capacity))),
          index(static_cast<int>(r) - sequence * rows.each.capacity) {}
    __device__ bool live(const batch_rows& rows) const { return index < rows.each.of(sequence); }
};

/// Whether the row is there and live.
__device__ inline bool is_live(const batch_rows& rows, long long row) {
    return row < rows.capacity() && (rows.each.live == nullptr || row_place(rows, row).live(rows));
}

/// Calls `op` for every live row:
///   op.begin(place)                       what the row needs, a small value; what only lane 0 does is its own business
///
///   op.load<whole>(state, place, c, n)    the numbers of columns c ... c + 7 (n exist), as loaded
///
///   op.store<whole>(state, place, c, n, loaded)
/// Loads of two to four places are in flight before the first is used. Several warps share a row where rows are few,
/// unless the type says `takes_rows`.
template <bool whole, class Op>
__global__ void __launch_bounds__(256) each_row_kernel(const batch_rows rows, int width, const Op op) {
    wait_for_kernel_before();
    const long long row = blockIdx.x * 8LL + threadIdx.x / 32;
    if (row >= rows.capacity()) return;
    const row_place place(rows, row);
    if (!place.live(rows)) return;
    const auto state = op.begin(place);
    using loaded_type = decltype(op.template load<whole>(state, place, 0, 0));
    constexpr int step = 32 * 8, ahead = sizeof(loaded_type) <= 16 ? 4 : 2;
    constexpr bool takes_rows = requires { Op::takes_rows; };
    // A warp's share of the row: every so many pieces one.
    const int piece = takes_rows ? 0 : static_cast<int>(blockIdx.y),
              pieces = takes_rows ? 1 : static_cast<int>(gridDim.y);
    for (int first = piece * ahead * step + static_cast<int>(threadIdx.x % 32) * 8; first < width;
         first += pieces * ahead * step) {
        loaded_type loaded[ahead];
#pragma unroll
        for (int u = 0; u < ahead; ++u) {
            const int c = first + u * step;
            if (c < width) loaded[u] = op.template load<whole>(state, place, c, width - c);
        }
#pragma unroll
        for (int u = 0; u < ahead; ++u) {
            const int c = first + u * step;
            if (c < width) op.template store<whole>(state, place, c, width - c, loaded[u]);
        }
    }
}

namespace detail {

inline constexpr long long many_rows = 8192;  // a warp each fills an H100 or H200

inline unsigned blocks_of(long long count, int each) { return static_cast<unsigned>((count + each - 1) / each); }

inline void check_rows(const batch_rows& rows, int width, const char* what) {
    if (rows.capacity() > 1LL << 30 || width < 0)
        throw error(std::string(what) + ": more than 2^30 rows; make the micro-batch smaller");
}

}  // namespace detail

template <class Op>
void each_row(const batch_rows& rows, int width, const Op& op, const char* what, cudaStream_t stream) {
    detail::check_rows(rows, width, what);
    if (rows.capacity() < 1 || width < 1) return;
    constexpr bool takes_rows = requires { Op::takes_rows; };
    const bool shared = !takes_rows && rows.capacity() < detail::many_rows;
    const dim3 blocks(detail::blocks_of(rows.capacity(), 8), shared ? detail::blocks_of(width, 512) : 1u);
    launch_early(width % 8 == 0 ? each_row_kernel<true, Op> : each_row_kernel<false, Op>, blocks, 256, 0, stream, what,
                 rows, width, op);
}

}  // namespace sdepth::inline v0::on_cuda
