// SPDX-License-Identifier: MIT
// Preparation of queries and keys: norm of each head, then rotary phases at original positions; bound by memory.
// Rank 5.
//
// One warp: one row after another, all its heads in turn, so that the angles of a row are found once. A lane holds
// eight pairs of elements c and c + h/2. Other head sizes than 16 times a power of two take the plain kernels, a warp
// for each head. A norm over the full width is an rms_norm of its own, before or after.
#pragma once

#include <algorithm>
#include <cmath>
#include <numbers>
#include <type_traits>

#include "sdepth/kernels/cuda/norm.cuh"
#include "sdepth/ops/rotary.hpp"

namespace sdepth::inline v0::on_cuda {

/// Turns a position of each pair. In double: a position of 2^20 leaves 33 bits of the angle.
struct rotary_speeds {
    static constexpr int most = 128;
    double turns[most];

    rotary_speeds(int head_dim, double base) {
        for (int c = 0; c < most; ++c)
            turns[c] = c < head_dim / 2 ? std::pow(base, -2.0 * c / head_dim) / (2 * std::numbers::pi) : 0;
    }
};

/// Cosine and sine of a pair's angle at a position.
__device__ inline float2 rotary_phase(double turns, int position) {
    const double turn = turns * position;
    float2 phase;
    sincospif(2.f * static_cast<float>(turn - rint(turn)), &phase.y, &phase.x);
    return phase;
}

template <class P>
__device__ inline int rotary_position(const QkPrepareArgs<P>& a, const row_place& place) {
    return a.positions != nullptr ? a.positions[place.row] : place.index;
}

/// A lane's eight pairs, and the sums over the lanes of a head.
struct rotary_lane {
    int lanes, heads, head, c, half;  // lanes of a head, heads at a time, first head, first pair, pairs of a head

    __device__ explicit rotary_lane(int head_dim)
        : lanes(head_dim / 16),
          heads(32 / lanes),
          head(static_cast<int>(threadIdx.x) % 32 / lanes),
          c(static_cast<int>(threadIdx.x) % lanes * 8),
          half(head_dim / 2) {}
    __device__ float sum(float x) const {
        for (int step = lanes / 2; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
        return x;
    }
    /// Angles of a row, each found by one lane of the warp; `speeds` and the warp's `room` [pairs] in shared memory.
    __device__ void phases(const double* speeds, int position, float2* room, float (&cosine)[8],
                           float (&sine)[8]) const {
        __syncwarp();
        for (int p = static_cast<int>(threadIdx.x) % 32; p < half; p += 32) room[p] = rotary_phase(speeds[p], position);
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 8; i += 2) {
            const float4 two = *reinterpret_cast<const float4*>(room + c + i);
            cosine[i] = two.x, sine[i] = two.y, cosine[i + 1] = two.z, sine[i + 1] = two.w;
        }
    }
};

/// Rows of a warp: from its number among all warps on, as many apart as there are warps.
struct rotary_rows {
    long long row, step;

    __device__ rotary_rows()
        : row(static_cast<long long>(blockIdx.x) * (blockDim.x / 32) + threadIdx.x / 32),
          step(static_cast<long long>(gridDim.x) * (blockDim.x / 32)) {}
    template <class P>
    __device__ int position(const QkPrepareArgs<P>& a, long long of) const {
        return a.rotary && is_live(a.rows, of) ? rotary_position(a, row_place(a.rows, of)) : 0;
    }
};

template <class P>
using rotary_ring = row_ring<typename P::activation, 2, 0, 6>;  // both halves of x

template <class P>
__global__ void __launch_bounds__(128, 5) qk_prepare_kernel(const QkPrepareArgs<P> a, const rotary_speeds speeds) {
    wait_for_kernel_before();
    __shared__ double turns[rotary_speeds::most];
    __shared__ __align__(16) float weights[2 * rotary_speeds::most];
    __shared__ __align__(16) float2 angles[4][rotary_speeds::most];
    __shared__ __align__(16) unsigned char room[4 * rotary_ring<P>::bytes];
    if (threadIdx.x < rotary_speeds::most) turns[threadIdx.x] = speeds.turns[threadIdx.x];
    for (int c = static_cast<int>(threadIdx.x); a.norm != qk_norm::none && c < a.head_dim; c += 128)
        weights[c] = to_float(a.weight[c]);
    __syncthreads();
    const rotary_lane me(a.head_dim);
    const bool norm = a.norm != qk_norm::none;
    rotary_ring<P> ahead(room);
    rotary_rows rows;
    // What is asked for runs ahead of what is worked on.
    long long asked = rows.row;
    int asked_head = me.head;
    const auto ask = [&](int stage) {
        if (asked < a.rows.capacity()) {
            if (asked_head < a.heads && is_live(a.rows, asked)) {
                const auto* const from = a.x + (asked * a.heads + asked_head) * a.head_dim + me.c;
                ahead.template ask<true>(stage, 0, from, 8);
                ahead.template ask<true>(stage, 1, from + me.half, 8);
            }
            asked_head += me.heads;
            if (asked_head - me.head >= a.heads) asked_head = me.head, asked += rows.step;
        }
        ahead.close();
    };
#pragma unroll 1
    for (int s = 0; s < ahead.stages; ++s) ask(s);
    int stage = 0, next_position = rows.position(a, rows.row);
    for (long long row = rows.row; row < a.rows.capacity(); row += rows.step) {
        const bool live = is_live(a.rows, row);
        const int position = next_position;
        next_position = rows.position(a, row + rows.step);
        float cosine[8], sine[8];
        if (a.rotary) me.phases(turns, position, angles[threadIdx.x / 32], cosine, sine);
        for (int first = 0; first < a.heads; first += me.heads) {  // all lanes, for the sums
            const int head = first + me.head;
            const bool there = live && head < a.heads;
            ahead.wait();
            float low[8] = {}, high[8] = {};
            if (there) {
                const auto l = ahead.piece(stage, 0), h = ahead.piece(stage, 1);
#pragma unroll
                for (int i = 0; i < 8; ++i) low[i] = to_float(l.x[i]), high[i] = to_float(h.x[i]);
            }
            ask(stage);
            stage = stage + 1 == ahead.stages ? 0 : stage + 1;
            if (norm) {
                float sum = 0;
#pragma unroll
                for (int i = 0; i < 8; ++i) sum += low[i] * low[i] + high[i] * high[i];
                const float rstd = rsqrtf(me.sum(sum) / static_cast<float>(a.head_dim) + static_cast<float>(a.epsilon));
                if (there && me.c == 0) a.rstd[row * a.heads + head] = rstd;
                const auto w = load_eight<true>(weights + me.c, 8), v = load_eight<true>(weights + me.c + me.half, 8);
#pragma unroll
                for (int i = 0; i < 8; ++i) low[i] *= w.x[i] * rstd, high[i] *= v.x[i] * rstd;
            }
            if (a.rotary)
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    const float l = low[i], h = high[i];
                    low[i] = l * cosine[i] - h * sine[i];
                    high[i] = h * cosine[i] + l * sine[i];
                }
            if (!there) continue;
            auto* const to = a.y + (row * a.heads + head) * a.head_dim + me.c;
            store_eight<true>(to, low, 8);
            store_eight<true>(to + me.half, high, 8);
        }
    }
}

template <class P>
using rotary_backward_ring = row_ring<typename P::activation, 4, 1, 4>;  // both halves of grad_y and of x; rstd

template <class P>
__global__ void __launch_bounds__(256, 2)
    qk_prepare_backward_kernel(const QkPrepareBackwardArgs<P> g, const rotary_speeds speeds, float* partial) {
    wait_for_kernel_before();
    extern __shared__ __align__(1024) unsigned char raw[];  // as in every kernel: one name, one alignment
    const QkPrepareArgs<P>& a = g.forward;
    __shared__ double turns[rotary_speeds::most];
    __shared__ __align__(16) float2 angles[8][rotary_speeds::most];
    __shared__ float all[8][2 * rotary_speeds::most];
    if (threadIdx.x < rotary_speeds::most) turns[threadIdx.x] = speeds.turns[threadIdx.x];
    __syncthreads();
    const rotary_lane me(a.head_dim);
    const bool norm = a.norm != qk_norm::none;
    rotary_backward_ring<P> ahead(raw);
    rotary_rows rows;
    long long asked = rows.row;
    int asked_head = me.head;
    const auto ask = [&](int stage) {
        if (asked < a.rows.capacity()) {
            if (asked_head < a.heads && is_live(a.rows, asked)) {
                const long long item = asked * a.heads + asked_head, at = item * a.head_dim + me.c;
                ahead.template ask<true>(stage, 0, g.grad_y + at, 8);
                ahead.template ask<true>(stage, 1, g.grad_y + at + me.half, 8);
                if (norm) {
                    ahead.template ask<true>(stage, 2, a.x + at, 8);
                    ahead.template ask<true>(stage, 3, a.x + at + me.half, 8);
                    ahead.ask(stage, 0, a.rstd + item);
                }
            }
            asked_head += me.heads;
            if (asked_head - me.head >= a.heads) asked_head = me.head, asked += rows.step;
        }
        ahead.close();
    };
#pragma unroll 1
    for (int s = 0; s < ahead.stages; ++s) ask(s);
    float weight[2][8], sums[2][8] = {};
    if (norm)
#pragma unroll
        for (int part = 0; part < 2; ++part) {
            const auto w = load_eight<true>(a.weight + me.c + part * me.half, 8);
#pragma unroll
            for (int i = 0; i < 8; ++i) weight[part][i] = to_float(w.x[i]);
        }
    int stage = 0, next_position = rows.position(a, rows.row);
    for (long long row = rows.row; row < a.rows.capacity(); row += rows.step) {
        const bool live = is_live(a.rows, row);
        const int position = next_position;
        next_position = rows.position(a, row + rows.step);
        float cosine[8], sine[8];
        if (a.rotary) me.phases(turns, position, angles[threadIdx.x / 32], cosine, sine);
        for (int first = 0; first < a.heads; first += me.heads) {
            const int head = first + me.head;
            const bool there = live && head < a.heads;
            ahead.wait();
            float low[8] = {}, high[8] = {}, x[2][8] = {};
            float rstd = 0;
            if (there) {
                const auto l = ahead.piece(stage, 0), h = ahead.piece(stage, 1);
                if (norm) {
                    const auto xl = ahead.piece(stage, 2), xh = ahead.piece(stage, 3);
                    rstd = ahead.scalar(stage, 0);
#pragma unroll
                    for (int i = 0; i < 8; ++i) x[0][i] = to_float(xl.x[i]), x[1][i] = to_float(xh.x[i]);
                }
#pragma unroll
                for (int i = 0; i < 8; ++i) low[i] = to_float(l.x[i]), high[i] = to_float(h.x[i]);
            }
            ask(stage);
            stage = stage + 1 == ahead.stages ? 0 : stage + 1;
            if (a.rotary)
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    const float l = low[i], h = high[i];
                    low[i] = l * cosine[i] + h * sine[i];
                    high[i] = h * cosine[i] - l * sine[i];
                }
            if (norm) {
                float along = 0;
#pragma unroll
                for (int i = 0; i < 8; ++i) along += weight[0][i] * low[i] * x[0][i] + weight[1][i] * high[i] * x[1][i];
                along = me.sum(along) * rstd * rstd / static_cast<float>(a.head_dim);
#pragma unroll
                for (int i = 0; i < 8; ++i) {
                    sums[0][i] += low[i] * x[0][i] * rstd, sums[1][i] += high[i] * x[1][i] * rstd;
                    low[i] = rstd * (weight[0][i] * low[i] - x[0][i] * along);
                    high[i] = rstd * (weight[1][i] * high[i] - x[1][i] * along);
                }
            }
            if (!there) continue;
            auto* const to = g.grad_x + (row * a.heads + head) * a.head_dim + me.c;
            store_eight<true>(to, low, 8);
            store_eight<true>(to + me.half, high, 8);
        }
    }
    if (!norm) return;
        // The lanes that share a column, then the warps, in order.
#pragma unroll
    for (int part = 0; part < 2; ++part)
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            for (int step = 16; step >= me.lanes; step /= 2) sums[part][i] += __shfl_xor_sync(~0u, sums[part][i], step);
            if (me.head == 0) all[threadIdx.x / 32][me.c + i + part * me.half] = sums[part][i];
        }
    __syncthreads();
    for (int c = static_cast<int>(threadIdx.x); c < a.head_dim; c += 256) {
        float sum = 0;
        for (int w = 0; w < 8; ++w) sum += all[w][c];
        partial[static_cast<long long>(blockIdx.x) * a.head_dim + c] = sum;
    }
}

/// Any head size up to 256: a lane holds the elements lane + 32 i of one head.
template <class P>
struct rotary_plain_lane {
    int lane, half, dim;
    __device__ explicit rotary_plain_lane(int head_dim)
        : lane(static_cast<int>(threadIdx.x) % 32), half(head_dim / 2), dim(head_dim) {}
    /// Elements of `x`, turned by `direction` times their angles.
    __device__ void read(const typename P::activation* x, float (&y)[8]) const {
#pragma unroll
        for (int i = 0; i < 8; ++i) y[i] = lane + 32 * i < dim ? to_float(x[lane + 32 * i]) : 0.f;
    }
    __device__ void turn(float (&y)[8], float* row, const double* turns, int position, float direction) const {
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (lane + 32 * i < dim) row[lane + 32 * i] = y[i];
        __syncwarp();
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            const int e = lane + 32 * i;
            if (e >= dim) continue;
            const bool low = e < half;
            const float2 p = rotary_phase(turns[low ? e : e - half], position);
            y[i] = y[i] * p.x + (low ? -row[e + half] : row[e - half]) * (direction * p.y);
        }
    }
};

template <class P>
__global__ void __launch_bounds__(256) qk_prepare_plain_kernel(const QkPrepareArgs<P> a, const rotary_speeds speeds) {
    __shared__ double turns[rotary_speeds::most];
    __shared__ float rows[8][2 * rotary_speeds::most];
    if (threadIdx.x < rotary_speeds::most) turns[threadIdx.x] = speeds.turns[threadIdx.x];
    __syncthreads();
    const long long item = blockIdx.x * 8LL + threadIdx.x / 32, row = item / a.heads;
    if (row >= a.rows.capacity()) return;
    const row_place place(a.rows, row);
    if (!place.live(a.rows)) return;
    const rotary_plain_lane<P> me(a.head_dim);
    float y[8];
    me.read(a.x + item * a.head_dim, y);
    if (a.norm != qk_norm::none) {
        float sum = 0;
#pragma unroll
        for (int i = 0; i < 8; ++i) sum += y[i] * y[i];
        const float rstd = rsqrtf(warp_sum(sum) / static_cast<float>(a.head_dim) + static_cast<float>(a.epsilon));
        if (me.lane == 0) a.rstd[item] = rstd;
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (me.lane + 32 * i < a.head_dim) y[i] *= to_float(a.weight[me.lane + 32 * i]) * rstd;
    }
    if (a.rotary) me.turn(y, rows[threadIdx.x / 32], turns, rotary_position(a, place), 1.f);
#pragma unroll
    for (int i = 0; i < 8; ++i)
        if (me.lane + 32 * i < a.head_dim)
            a.y[item * a.head_dim + me.lane + 32 * i] = from_float<typename P::activation>(y[i]);
}

template <class P>
__global__ void __launch_bounds__(256)
    qk_prepare_backward_plain_kernel(const QkPrepareBackwardArgs<P> g, const rotary_speeds speeds, float* partial) {
    const QkPrepareArgs<P>& a = g.forward;
    __shared__ double turns[rotary_speeds::most];
    __shared__ float rows[8][2 * rotary_speeds::most];
    if (threadIdx.x < rotary_speeds::most) turns[threadIdx.x] = speeds.turns[threadIdx.x];
    __syncthreads();
    const rotary_plain_lane<P> me(a.head_dim);
    const bool norm = a.norm != qk_norm::none;
    float sums[8] = {};
    for (long long item = blockIdx.x * 8LL + threadIdx.x / 32; item < a.rows.capacity() * a.heads;
         item += gridDim.x * 8LL) {
        const row_place place(a.rows, item / a.heads);
        if (!place.live(a.rows)) continue;
        float y[8];
        me.read(g.grad_y + item * a.head_dim, y);
        if (a.rotary) me.turn(y, rows[threadIdx.x / 32], turns, rotary_position(a, place), -1.f);
        if (norm) {
            float x[8], w[8], along = 0;
            me.read(a.x + item * a.head_dim, x);
            const float rstd = a.rstd[item];
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                w[i] = me.lane + 32 * i < a.head_dim ? to_float(a.weight[me.lane + 32 * i]) : 0.f;
                along += w[i] * y[i] * x[i];
            }
            along = warp_sum(along) * rstd * rstd / static_cast<float>(a.head_dim);
#pragma unroll
            for (int i = 0; i < 8; ++i) {
                sums[i] += y[i] * x[i] * rstd;
                y[i] = rstd * (w[i] * y[i] - x[i] * along);
            }
        }
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (me.lane + 32 * i < a.head_dim)
                g.grad_x[item * a.head_dim + me.lane + 32 * i] = from_float<typename P::activation>(y[i]);
    }
    if (!norm) return;
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 8; ++i) rows[threadIdx.x / 32][me.lane + 32 * i] = sums[i];
    __syncthreads();
    const int c = static_cast<int>(threadIdx.x);
    if (c >= a.head_dim) return;
    float sum = 0;
    for (int w = 0; w < 8; ++w) sum += rows[w][c];
    partial[static_cast<long long>(blockIdx.x) * a.head_dim + c] = sum;
}

namespace detail {

template <class P>
bool check_heads(const QkPrepareArgs<P>& a, const char* what) {
    check_rows(a.rows, a.head_dim, what);
    if (a.head_dim < 1 || a.head_dim > 2 * rotary_speeds::most)
        throw error(std::string(what) + ": head_dim " + std::to_string(a.head_dim) + " has no kernel; use 1 to 256");
    if (a.rotary && a.head_dim % 2 != 0)
        throw error(std::string(what) + ": rotary phases need an even head_dim; change it or leave them out");
    const int lanes = a.head_dim / 16;
    return a.head_dim % 16 == 0 && (lanes & (lanes - 1)) == 0;
}

// The norm over the full width alone, as rows of their own.
template <class P>
RmsNormArgs<P> full_width_norm(const QkPrepareArgs<P>& a) {
    return {.rows = a.rows,
            .width = a.heads * a.head_dim,
            .epsilon = a.epsilon,
            .x = a.x,
            .weight = a.weight,
            .y = a.y,
            .rstd = a.rstd};
}

inline constexpr unsigned prepare_blocks = 660;  // five for each processor of an H100 or H200
inline constexpr int rotary_blocks = 1056;       // that leave sums behind, at most: eight for each processor

// A warp has four items in turn where that leaves two blocks for each processor, else fewer.
constexpr int blocks_of_sums(long long items) {
    constexpr long long two_each = 264;
    return static_cast<int>(
        std::clamp<long long>(std::min((items + 7) / 8, std::max((items + 31) / 32, two_each)), 1, rotary_blocks));
}

}  // namespace detail

/// See QkPrepareArgs. Head sizes up to 256.
template <class P>
void qk_prepare(const QkPrepareArgs<P>& a, cudaStream_t stream) {
    const bool fast = detail::check_heads(a, "qk_prepare");
    if (a.rows.capacity() < 1 || a.heads < 1) return;
    QkPrepareArgs<P> turned = a;
    if (a.norm == qk_norm::full_width) {
        rms_norm(detail::full_width_norm(a), stream);
        if (!a.rotary) return;
        turned.norm = qk_norm::none;
        turned.x = a.y;
    }
    const rotary_speeds speeds(a.head_dim, a.base);
    if (fast)
        launch_early(qk_prepare_kernel<P>, std::min(detail::blocks_of(a.rows.capacity(), 4), detail::prepare_blocks),
                     128, 0, stream, "qk_prepare", turned, speeds);
    else
        qk_prepare_plain_kernel<P>
            <<<detail::blocks_of(a.rows.capacity() * a.heads, 8), 256, 0, stream>>>(turned, speeds);
    check(cudaGetLastError(), "qk_prepare");
}

constexpr std::size_t qk_prepare_backward_scratch(int heads, int head_dim) {
    const std::size_t one = static_cast<std::size_t>(head_dim) * detail::rotary_blocks * sizeof(float);
    const std::size_t full = rms_norm_backward_scratch(heads * head_dim);
    return one > full ? one : full;
}

/// See QkPrepareBackwardArgs.
template <class P>
void qk_prepare_backward(const QkPrepareBackwardArgs<P>& g, block_sums sums, cudaStream_t stream) {
    const QkPrepareArgs<P>& a = g.forward;
    const bool fast = detail::check_heads(a, "qk_prepare_backward");
    if (a.rows.capacity() < 1 || a.heads < 1) return;
    const bool full_width = a.norm == qk_norm::full_width;
    QkPrepareBackwardArgs<P> turned = g;
    if (full_width) turned.forward.norm = qk_norm::none;
    const rotary_speeds speeds(a.head_dim, a.base);
    const bool sums_here = a.norm == qk_norm::per_head;
    auto* partial = sums_here ? sums.room<float>(qk_prepare_backward_scratch(a.heads, a.head_dim), stream) : nullptr;
    const int blocks = fast ? static_cast<int>(std::min<long long>((a.rows.capacity() + 7) / 8, column_sum_blocks))
                            : detail::blocks_of_sums(a.rows.capacity() * a.heads);
    constexpr std::size_t shared = 8 * rotary_backward_ring<P>::bytes;
    if (fast)
        launch_early(with_shared(qk_prepare_backward_kernel<P>, shared, "qk_prepare_backward"),
                     static_cast<unsigned>(blocks), 256, shared, stream, "qk_prepare_backward", turned, speeds,
                     partial);
    else
        qk_prepare_backward_plain_kernel<P><<<static_cast<unsigned>(blocks), 256, 0, stream>>>(turned, speeds, partial);
    check(cudaGetLastError(), "qk_prepare_backward");
    if (full_width)
        rms_norm_backward(RmsNormBackwardArgs<P>{.forward = detail::full_width_norm(a),
                                                 .grad_y = g.grad_x,
                                                 .grad_x = g.grad_x,
                                                 .grad_weight = g.grad_weight},
                          sums, stream);
    else if (sums_here)
        sums.add_columns(partial, blocks, a.head_dim, g.grad_weight, "qk_prepare_backward", stream);
}

}  // namespace sdepth::inline v0::on_cuda
