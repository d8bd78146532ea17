// SPDX-License-Identifier: MIT
// The optimiser's operations: sum of squares, what a step's updates share, AdamW; bound by memory. Rank 5.
#pragma once

#include <cmath>
#include <cstddef>

#include "sdepth/kernels/cuda/reduce.cuh"
#include "sdepth/ops/update.hpp"

namespace sdepth::inline v0::on_cuda {

namespace detail {

inline constexpr int square_blocks = 1056;  // eight for each processor of an H100 or H200

template <class T>
__global__ void __launch_bounds__(256) squares_kernel(const T* x, long long count, double* partial) {
    constexpr int ahead = 4;
    const long long each = 8LL * 256 * square_blocks;
    double sum = 0;
    for (long long first = (blockIdx.x * 256LL + threadIdx.x) * 8; first < count; first += ahead * each) {
        eight<T> raw[ahead];
#pragma unroll
        for (int u = 0; u < ahead; ++u) {
            const long long at = first + u * each, left = count - at;
            if (left >= 8)
                raw[u] = load_eight<true>(x + at, 8);
            else
                raw[u] = load_eight<false>(x + (left > 0 ? at : 0), left > 0 ? static_cast<int>(left) : 0);
        }
#pragma unroll
        for (int u = 0; u < ahead; ++u) {
            float part = 0;  // of eight; in double from there on
#pragma unroll
            for (int e = 0; e < 8; ++e) part += to_float(raw[u].x[e]) * to_float(raw[u].x[e]);
            sum += static_cast<double>(part);
        }
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}

static __global__ void update_scalars_kernel(const BeginUpdateArgs a) { *a.scalars = scalars_of(a); }

}  // namespace detail

constexpr std::size_t squares_scratch() { return detail::square_blocks * sizeof(double); }

/// See SquaresArgs. `grad` is a multiple of 16 bytes.
template <class P>
void squares(const SquaresArgs<P>& a, void* scratch, cudaStream_t stream) {
    if (a.count < 1) return;
    auto* partial = static_cast<double*>(scratch);
    detail::squares_kernel<<<detail::square_blocks, 256, 0, stream>>>(a.grad, a.count, partial);
    check(cudaGetLastError(), "squares");
    add_sum(partial, detail::square_blocks, a.sum, "squares", stream);
}

/// See BeginUpdateArgs.
inline void begin_update(const BeginUpdateArgs& a, cudaStream_t stream) {
    detail::update_scalars_kernel<<<1, 1, 0, stream>>>(a);
    check(cudaGetLastError(), "begin_update");
}

/// Eight numbers a thread, a layer for each blockIdx.y: 30 bytes a number with a bfloat16 copy and fp32 elsewhere.
template <class P>
__global__ void __launch_bounds__(256) adamw_kernel(const AdamwArgs<P> a) {
    const update_scalars& s = *a.scalars;
    if (s.finite == 0) return;
    const long long i = (blockIdx.x * 256LL + threadIdx.x) * 8, left = a.count - i;
    if (left <= 0) return;
    const long long at = blockIdx.y * a.stride + i, grad_at = blockIdx.y * a.grad_stride + i,
                    second_at = blockIdx.y * a.second_stride + i;
    const auto beta1 = static_cast<float>(a.beta1), beta2 = static_cast<float>(a.beta2);
    const auto rest1 = static_cast<float>(1 - a.beta1), rest2 = static_cast<float>(1 - a.beta2);
    const auto epsilon = static_cast<float>(a.epsilon), decay = static_cast<float>(a.decay);
    const auto scale = static_cast<float>(s.grad_scale), rate = static_cast<float>(a.share * s.rate);
    const auto correct1 = static_cast<float>(s.correct1), correct2 = static_cast<float>(s.correct2);
    const auto work = [&]<bool whole>(int n) {
        const auto grad = load_eight<whole>(a.grad + grad_at, n);
        const auto first = load_eight<whole>(a.first + at, n), second = load_eight<whole>(a.second + second_at, n);
        const auto master = load_eight<whole>(a.master + at, n);
        float m[8], v[8], w[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            const float g = scale * to_float(grad.x[e]);
            m[e] = beta1 * to_float(first.x[e]) + rest1 * g;
            v[e] = beta2 * to_float(second.x[e]) + rest2 * g * g;
            w[e] = to_float(master.x[e]);
            w[e] -= rate * (m[e] * correct1 / (sqrtf(v[e] * correct2) + epsilon) + decay * w[e]);
        }
        store_eight<whole>(a.first + at, m, n);
        store_eight<whole>(a.second + second_at, v, n);
        store_eight<whole>(a.master + at, w, n);
        if (a.weight != nullptr) store_eight<whole>(a.weight + at, w, n);
    };
    if (left >= 8)
        work.template operator()<true>(8);
    else
        work.template operator()<false>(static_cast<int>(left));
}

/// See AdamwArgs. All pointers are multiples of 16 bytes, strides of eight numbers.
template <class P>
void adamw(const AdamwArgs<P>& a, cudaStream_t stream) {
    if (a.count < 1 || a.layers < 1) return;
    if (a.layers > 65535) throw error("adamw: more than 65535 layers in one run; split it");
    const dim3 grid(detail::blocks_of(a.count, 256 * 8), static_cast<unsigned>(a.layers));
    adamw_kernel<P><<<grid, 256, 0, stream>>>(a);
    check(cudaGetLastError(), "adamw");
}

}  // namespace sdepth::inline v0::on_cuda
