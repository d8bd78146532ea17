// SPDX-License-Identifier: MIT
// Muon: momentum, Newton-Schulz on the tensor cores, update; several matrices at a time. Rank 5.
//
//  1. Momentum and the matrix X that goes in, in bfloat16, with sums of its squares.
//  2. X over its Frobenius norm.
//  3. Five times: G = X X', P = c G G + b G, X = P X + a X, products of all matrices at once.
//  4. Sums of squares of X, for the size of the update.
//  5. The update of the weights and of their copies.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "sdepth/kernels/cuda/products.cuh"
#include "sdepth/kernels/cuda/reduce.cuh"
#include "sdepth/ops/update.hpp"

namespace sdepth::inline v0::on_cuda {

namespace detail {

inline constexpr int muon_blocks = 256;  // of a matrix; each leaves a sum of squares behind

// The matrices at hand: number `first` and those after it, packed in x one after the other.
template <class P>
struct muon_batch {
    MuonArgs<P> a;
    long long first, size, step;  // size = rows * cols; step from matrix to matrix in x
    typename P::activation* x;
    double* sums;  // [matrices at hand, muon_blocks]

    __device__ long long place() const {
        const long long item = first + blockIdx.y;
        return item / a.matrices * a.stride + item % a.matrices * size;
    }
    __device__ long long grad_place() const {
        const long long item = first + blockIdx.y;
        return item / a.matrices * a.grad_stride + item % a.matrices * size;
    }
    __device__ typename P::activation* own_x() const { return x + blockIdx.y * step; }
    __device__ void leave(double sum) const {
        sum = block_sum(sum);
        if (threadIdx.x == 0) sums[blockIdx.y * muon_blocks + blockIdx.x] = sum;
    }
    // Sum over the matrix, in every thread.
    __device__ double total() const {
        __shared__ double all;
        const double sum = block_sum(sums[blockIdx.y * muon_blocks + threadIdx.x]);
        if (threadIdx.x == 0) all = sum;
        __syncthreads();
        return all;
    }
    // Calls f<whole>(first of eight numbers, how many there are).
    template <bool whole, class F>
    __device__ void each(const F& f) const {
        for (long long i = (blockIdx.x * 256LL + threadIdx.x) * 8; i < size; i += 8LL * 256 * muon_blocks)
            f(i, static_cast<int>(size - i < 8 ? size - i : 8));
    }
};

// 1.
template <bool whole, class P>
__global__ void __launch_bounds__(muon_blocks) muon_momentum_kernel(const muon_batch<P> m) {
    const MuonArgs<P>& a = m.a;
    if (a.scalars->finite == 0) return;
    const auto momentum = static_cast<float>(a.momentum), scale = static_cast<float>(a.scalars->grad_scale);
    const long long place = m.place(), grad_place = m.grad_place();
    double squares = 0;
    m.template each<whole>([&](long long i, int n) {
        const auto grad = load_eight<whole>(a.grad + grad_place + i, n);
        const auto old = load_eight<whole>(a.first + place + i, n);
        float first[8], x[8], part = 0;
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            const float g = scale * to_float(grad.x[e]);
            first[e] = momentum * to_float(old.x[e]) + g;
            x[e] = a.nesterov ? g + momentum * first[e] : first[e];
            part += x[e] * x[e];
        }
        squares += static_cast<double>(part);
        store_eight<whole>(a.first + place + i, first, n);
        store_eight<whole>(m.own_x() + i, x, n);
    });
    m.leave(squares);
}

// 2.
template <bool whole, class P>
__global__ void __launch_bounds__(muon_blocks) muon_shrink_kernel(const muon_batch<P> m) {
    if (m.a.scalars->finite == 0) return;
    const double squares = m.total();
    const float shrink = squares > 0 ? static_cast<float>(1 / sqrt(squares)) : 0.f;
    m.template each<whole>([&](long long i, int n) {
        const auto raw = load_eight<whole>(m.own_x() + i, n);
        float x[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) x[e] = to_float(raw.x[e]) * shrink;
        store_eight<whole>(m.own_x() + i, x, n);
    });
}

// 4.
template <bool whole, class P>
__global__ void __launch_bounds__(muon_blocks) muon_squares_kernel(const muon_batch<P> m) {
    if (m.a.scalars->finite == 0) return;
    double squares = 0;
    m.template each<whole>([&](long long i, int n) {
        const auto raw = load_eight<whole>(m.own_x() + i, n);
        float part = 0;
#pragma unroll
        for (int e = 0; e < 8; ++e) part += to_float(raw.x[e]) * to_float(raw.x[e]);
        squares += static_cast<double>(part);
    });
    m.leave(squares);
}

// 5.
template <bool whole, class P>
__global__ void __launch_bounds__(muon_blocks) muon_apply_kernel(const muon_batch<P> m) {
    const MuonArgs<P>& a = m.a;
    if (a.scalars->finite == 0) return;
    const auto change = static_cast<float>(a.scalars->rate * muon_scale(a, m.total()));
    const auto keep = static_cast<float>(1 - a.scalars->rate * a.decay);
    const long long place = m.place();
    m.template each<whole>([&](long long i, int n) {
        const auto raw = load_eight<whole>(m.own_x() + i, n);
        const auto old = load_eight<whole>(a.master + place + i, n);
        float w[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) w[e] = keep * to_float(old.x[e]) - change * to_float(raw.x[e]);
        store_eight<whole>(a.master + place + i, w, n);
        if (a.weight != nullptr) store_eight<whole>(a.weight + place + i, w, n);
    });
}

}  // namespace detail

/// Step 3 for `batch` matrices x [rows, cols], `step` numbers apart; all room for as many: `turned` as x, `gram` and
/// `polynomial` [least, least], each `small` numbers apart. Returns where X ends, x or turned.
template <class T, class Products>
T* newton_schulz(int rows, int cols, int batch, int steps, T* x, T* turned, long long step, T* gram, T* polynomial,
                 long long small, Products& products, cudaStream_t stream) {
    const bool wide = rows <= cols;
    const int least = wide ? rows : cols, most = wide ? cols : rows;
    for (int i = 0; i < steps; ++i) {
        products({.m = least,
                  .n = least,
                  .k = most,
                  .a_transposed = !wide,
                  .b_transposed = wide,
                  .a = x,
                  .b = x,
                  .a_stride = cols,
                  .b_stride = cols,
                  .c_stride = least,
                  .batch = batch,
                  .a_batch = step,
                  .b_batch = step,
                  .c_batch = small},
                 gram, stream);
        products({.m = least,
                  .n = least,
                  .k = least,
                  .a = gram,
                  .b = gram,
                  .a_stride = least,
                  .b_stride = least,
                  .c_stride = least,
                  .alpha = 2.0315f,
                  .beta = -4.7750f,
                  .addend = gram,
                  .batch = batch,
                  .a_batch = small,
                  .b_batch = small,
                  .c_batch = small},
                 polynomial, stream);
        products({.m = rows,
                  .n = cols,
                  .k = least,
                  .a = wide ? polynomial : x,
                  .b = wide ? x : polynomial,
                  .a_stride = wide ? least : cols,
                  .b_stride = cols,
                  .c_stride = cols,
                  .beta = 3.4445f,
                  .addend = x,
                  .batch = batch,
                  .a_batch = wide ? small : step,
                  .b_batch = wide ? step : small,
                  .c_batch = step},
                 turned, stream);
        std::swap(x, turned);
    }
    return x;
}

/// See MuonArgs: up to `together` matrices at a time. Scratch starts at a multiple of 16 bytes, strides are of eight
/// numbers; a matrix that does not start at one, part of a tensor, goes number by number.
/// @param products  as class products
template <class P, class Products>
void muon(const MuonArgs<P>& a, Products& products, cudaStream_t stream) {
    const long long matrices = a.layers * a.matrices;
    if (matrices < 1 || a.rows < 1 || a.cols < 1) return;
    const auto padded = [](long long n) { return (n + 127) / 128 * 128; };
    const long long size = static_cast<long long>(a.rows) * a.cols, least = std::min(a.rows, a.cols);
    const long long step = padded(size), small = padded(least * least);
    const int together = std::clamp(a.together, 1, 65535);
    const auto starts_whole = [](const void* p) { return reinterpret_cast<std::uintptr_t>(p) % 16 == 0; };
    const bool aligned =
        starts_whole(a.master) && starts_whole(a.weight) && starts_whole(a.grad) && starts_whole(a.first);
    typename P::activation* const x = a.scratch;
    typename P::activation* const turned = x + together * step;
    typename P::activation* const gram = turned + together * step;
    typename P::activation* const polynomial = gram + together * small;
    detail::muon_batch<P> m{a, 0, size, step, x, reinterpret_cast<double*>(polynomial + together * small)};
    for (; m.first < matrices; m.first += together) {
        const int batch = static_cast<int>(std::min<long long>(together, matrices - m.first));
        const dim3 grid(detail::muon_blocks, static_cast<unsigned>(batch));
        const auto run = [&](auto whole) {
            constexpr bool all = decltype(whole)::value;
            m.x = x;
            detail::muon_momentum_kernel<all, P><<<grid, detail::muon_blocks, 0, stream>>>(m);
            detail::muon_shrink_kernel<all, P><<<grid, detail::muon_blocks, 0, stream>>>(m);
            check(cudaGetLastError(), "muon");
            m.x = newton_schulz(a.rows, a.cols, batch, a.steps, x, turned, step, gram, polynomial, small, products,
                                stream);
            detail::muon_squares_kernel<all, P><<<grid, detail::muon_blocks, 0, stream>>>(m);
            detail::muon_apply_kernel<all, P><<<grid, detail::muon_blocks, 0, stream>>>(m);
            check(cudaGetLastError(), "muon");
        };
        size % 8 == 0 && aligned ? run(std::true_type{}) : run(std::false_type{});
    }
}

}  // namespace sdepth::inline v0::on_cuda
