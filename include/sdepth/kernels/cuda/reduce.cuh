// SPDX-License-Identifier: MIT
// Sums in a fixed order: of a row by a team of warps, of columns over all rows, of numbers. Floating-point atomics are
// nowhere but in select.cuh, whose sums are exact: the same inputs give the same bits. Rank 5.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>

#include "sdepth/kernels/cuda/each_row.cuh"

namespace sdepth::inline v0::on_cuda {

/// Blocks that leave sums of columns behind; two for each processor of an H100 or H200.
inline constexpr int column_sum_blocks = 264;
/// Bytes of scratch for sums of `columns` columns.
constexpr std::size_t column_sums_scratch(long long columns) {
    return static_cast<std::size_t>(columns) * column_sum_blocks * sizeof(float);
}

/// Warps that share a row, each up to 1024 columns; a block of up to eight warps holds one team or more.
struct row_teams {
    int warps;  // of a team
    int teams;  // of a block

    __host__ __device__ explicit row_teams(int width, int block = 8)
        : warps((width + 1023) / 1024), teams(block > warps ? block / warps : 1) {}
    __host__ __device__ int threads() const { return warps * teams * 32; }
    static constexpr int widest = 8192;
    static constexpr int column_room = 1024;  // see store_columns
};

namespace detail {

inline void check_width(int width, const char* what) {
    if (width < 1 || width > row_teams::widest)
        throw error(std::string(what) + ": width " + std::to_string(width) + " has no kernel; use 1 to " +
                    std::to_string(row_teams::widest));
}
// Calls launch(whole as a constant, blocks, threads) for a kernel that sums columns; returns the blocks: as many as
// leave each team two rows, no more than column_sum_blocks.
template <class Launch>
int with_column_teams(long long rows, int width, const Launch& launch) {
    const row_teams t(width);
    const long long wanted = (rows + 2LL * t.teams - 1) / (2LL * t.teams);
    const auto blocks = static_cast<unsigned>(std::clamp<long long>(wanted, 1, column_sum_blocks));
    const auto threads = static_cast<unsigned>(t.threads());
    width % 8 == 0 ? launch(std::true_type{}, blocks, threads) : launch(std::false_type{}, blocks, threads);
    return static_cast<int>(blocks);
}

}  // namespace detail

/// One thread's place in its team: columns column() + 256 u + 0 ... 7 for u = 0 ... 3.
class team_member {
  public:
    __device__ explicit team_member(const row_teams& t)
        : warps_(t.warps),
          warp_(static_cast<int>(threadIdx.x) / 32 % t.warps),
          team_(static_cast<int>(threadIdx.x) / 32 / t.warps) {}
    __device__ int team() const { return team_; }
    __device__ int column() const { return warp_ * 1024 + static_cast<int>(threadIdx.x % 32) * 8; }
    __device__ bool leads() const { return warp_ == 0 && threadIdx.x % 32 == 0; }

    /// Sum over the team. Every thread of the block takes part.
    __device__ float sum(float x) const {
        x = warp_sum(x);
        if (warps_ == 1) return x;
        __shared__ float part[8];
        __syncthreads();
        if (threadIdx.x % 32 == 0) part[threadIdx.x / 32] = x;
        __syncthreads();
        x = 0;
        for (int w = 0; w < warps_; ++w) x += part[team_ * warps_ + w];
        return x;
    }

    /// Adds up the teams' sums of columns, in order, and stores them to `to` [width]. Every thread takes part.
    /// @param all  shared memory, column_room numbers for each warp of the block; what it held is lost
    __device__ void store_columns(const row_teams& t, const float (&sums)[4][8], float* all, float* to,
                                  int width) const {
        __syncthreads();
        float* const mine = all + (threadIdx.x / 32) * 1024 + (threadIdx.x % 32);
#pragma unroll
        for (int u = 0; u < 4; ++u)
#pragma unroll
            for (int e = 0; e < 8; ++e) mine[u * 256 + e * 32] = sums[u][e];  // no two lanes meet in a bank
        __syncthreads();
        for (int c = static_cast<int>(threadIdx.x); c < width; c += static_cast<int>(blockDim.x)) {
            const int in = c % 1024, at = in / 256 * 256 + in % 8 * 32 + in % 256 / 8;
            float sum = 0;
            for (int team = 0; team < t.teams; ++team) sum += all[(team * warps_ + c / 1024) * 1024 + at];
            to[c] = sum;
        }
    }

  private:
    int warps_, warp_, team_;
};

/// A thread's own numbers of a weight [width], in the columns of team_member, for all its rows: from the L1 cache they
/// would take more of it than the rows.
template <bool whole>
struct column_weights {
    float of[4][8];

    template <class T>
    __device__ column_weights(const T* weight, int column, int width) {
#pragma unroll
        for (int u = 0; u < 4; ++u) {
            const int left = width - column - 256 * u;
            const eight<T> w = left > 0 ? load_eight<whole>(weight + column + 256 * u, left) : eight<T>{};
#pragma unroll
            for (int e = 0; e < 8; ++e) of[u][e] = to_float(w.x[e]);
        }
    }
};

/// out[c] += sum over blocks of partial[block, c] for the 32 columns of `group`, by 1024 threads, 32 a column.
template <class T>
__device__ void add_column_group(const float* partial, int blocks, int columns, int group, T* out) {
    const int c = group * 32 + static_cast<int>(threadIdx.x % 32), part = static_cast<int>(threadIdx.x / 32);
    __shared__ float sums[32][33];
    float sum = 0;
    if (c < columns)
#pragma unroll 8
        for (int b = part; b < blocks; b += 32) sum += partial[static_cast<long long>(b) * columns + c];
    sums[part][threadIdx.x % 32] = sum;
    __syncthreads();
    sum = warp_sum(sums[threadIdx.x % 32][part]);  // a warp a column
    const int own = group * 32 + part;
    if (threadIdx.x % 32 == 0 && own < columns) out[own] = from_float<T>(to_float(out[own]) + sum);
}
/// *out += sum of x[0 ... n), by 1024 threads.
template <class T, class Out>
__device__ void add_whole_sum(const T* x, long long n, Out* out) {
    __shared__ double sums[32];
    double sum = 0;
#pragma unroll 4
    for (long long i = threadIdx.x; i < n; i += 1024) sum += static_cast<double>(x[i]);
    sum = warp_sum(sum);
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x >= 32) return;
    sum = warp_sum(sums[threadIdx.x]);
    if (threadIdx.x == 0) *out = static_cast<Out>(static_cast<double>(*out) + sum);
}

template <class T>
__global__ void __launch_bounds__(1024) add_columns_kernel(const float* partial, int blocks, int columns, T* out) {
    wait_for_kernel_before();
    add_column_group(partial, blocks, columns, static_cast<int>(blockIdx.x), out);
}
/// out[c] += sum over blocks of partial[block, c].
template <class T>
void add_columns(const float* partial, int blocks, int columns, T* out, const char* what, cudaStream_t stream) {
    launch_early(add_columns_kernel<T>, detail::blocks_of(columns, 32), 1024, 0, stream, what, partial, blocks, columns,
                 out);
}

template <class T, class Out>
__global__ void __launch_bounds__(1024) add_sum_kernel(const T* x, long long n, Out* out) {
    wait_for_kernel_before();
    add_whole_sum(x, n, out);
}
/// *out += sum of x[0 ... n). One block.
template <class T, class Out>
void add_sum(const T* x, long long n, Out* out, const char* what, cudaStream_t stream) {
    launch_early(add_sum_kernel<T, Out>, 1, 1024, 0, stream, what, x, n, out);
}

/// Sum of x over a block of at most 1024 threads, in thread 0. Every thread takes part.
__device__ inline double block_sum(double x) {
    __shared__ double sums[32];
    x = warp_sum(x);
    __syncthreads();
    if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = x;
    __syncthreads();
    if (threadIdx.x >= 32) return 0;
    return warp_sum(threadIdx.x < (blockDim.x + 31) / 32 ? sums[threadIdx.x] : 0.);
}

}  // namespace sdepth::inline v0::on_cuda
