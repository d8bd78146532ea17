// SPDX-License-Identifier: MIT
// The model's ends: embedding, and the output head with its cross-entropy. Rank 5.
#pragma once

#include <algorithm>
#include <cstddef>

#include "sdepth/kernels/cuda/norm.cuh"
#include "sdepth/kernels/cuda/products.cuh"
#include "sdepth/ops/ends.hpp"

namespace sdepth::inline v0::on_cuda {

namespace detail {

template <class P>
struct embed_op {
    EmbedArgs<P> a;
    // Start of the token's row, or -1.
    __device__ long long begin(const row_place& p) const {
        const int token = a.tokens[p.row];
        return token < 0 || token >= a.vocab ? -1 : static_cast<long long>(token) * a.width;
    }
    template <bool whole>
    __device__ auto load(long long from, const row_place&, int c, int n) const {
        return load_eight<whole>(a.table + (from < 0 ? 0 : from) + c, n);
    }
    template <bool whole>
    __device__ void store(long long from, const row_place& p, int c, int n, const eight<typename P::weight>& x) const {
        float y[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) y[e] = from < 0 ? __int_as_float(0x7fffffff) : to_float(x.x[e]);
        store_eight<whole>(a.x + p.row * a.width + c, y, n);
    }
};

inline constexpr int embed_classes = 1024;

}  // namespace detail

/// See EmbedArgs. A token outside the vocabulary gives a row of NaN, which no step survives.
template <class P>
void embed(const EmbedArgs<P>& a, cudaStream_t stream) {
    each_row(a.rows, a.width, detail::embed_op<P>{a}, "embed", stream);
}

/// A block owns the tokens t of one class, t = block (mod blocks):
///  1. it looks through the tokens of all rows, 2048 at a time, and lists those of its class in order of rows;
///  2. each thread adds the listed rows' gradients in its columns, one row after the other.
/// So rows of one token meet in order, whatever the number of blocks.
template <class P>
__global__ void __launch_bounds__(256) embed_backward_kernel(const EmbedBackwardArgs<P> g) {
    constexpr int each = 8, chunk = 256 * each, ahead = 4;
    const EmbedArgs<P>& a = g.forward;
    const int thread = static_cast<int>(threadIdx.x), classes = static_cast<int>(gridDim.x);
    __shared__ int listed_row[chunk], listed_token[chunk], counts[8];
    for (long long start = 0; start < a.rows.capacity(); start += chunk) {
        // 1.
        int token[each], mine = 0;
#pragma unroll
        for (int u = 0; u < each; ++u) {
            const long long row = start + thread * each + u;
            token[u] = -1;
            if (row >= a.rows.capacity()) continue;
            const int t = a.tokens[row];
            if (t < 0 || t >= a.vocab || t % classes != static_cast<int>(blockIdx.x)) continue;
            if (!row_place(a.rows, row).live(a.rows)) continue;
            token[u] = t;
            ++mine;
        }
        int before = mine;  // inclusive sum over the warp
#pragma unroll
        for (int step = 1; step < 32; step *= 2) {
            const int other = __shfl_up_sync(~0u, before, step);
            if (thread % 32 >= step) before += other;
        }
        if (thread % 32 == 31) counts[thread / 32] = before;
        __syncthreads();
        int at = before - mine, listed = 0;
#pragma unroll
        for (int w = 0; w < 8; ++w) {
            if (w < thread / 32) at += counts[w];
            listed += counts[w];
        }
#pragma unroll
        for (int u = 0; u < each; ++u)
            if (token[u] >= 0)
                listed_row[at] = static_cast<int>(start) + thread * each + u, listed_token[at++] = token[u];
        __syncthreads();
        // 2.
        for (int c = thread; c < a.width; c += 256) {
            typename P::gradient* to = nullptr;
            float sum = 0;
            for (int first = 0; first < listed; first += ahead) {
                typename P::activation x[ahead];
#pragma unroll
                for (int u = 0; u < ahead; ++u)
                    if (first + u < listed)
                        x[u] = g.grad_x[static_cast<long long>(listed_row[first + u]) * a.width + c];
#pragma unroll
                for (int u = 0; u < ahead; ++u) {
                    if (first + u >= listed) continue;
                    auto* const now = g.grad_table + static_cast<long long>(listed_token[first + u]) * a.width + c;
                    if (now != to) {
                        if (to != nullptr) *to = from_float<typename P::gradient>(sum);
                        to = now;
                        sum = to_float(*now);
                    }
                    sum += to_float(x[u]);
                }
            }
            if (to != nullptr) *to = from_float<typename P::gradient>(sum);
        }
        __syncthreads();
    }
}

/// See EmbedBackwardArgs.
template <class P>
void embed_backward(const EmbedBackwardArgs<P>& g, cudaStream_t stream) {
    const EmbedArgs<P>& a = g.forward;
    detail::check_rows(a.rows, a.width, "embed_backward");
    if (a.rows.capacity() < 1 || a.vocab < 1) return;
    const auto blocks = static_cast<unsigned>(std::min(a.vocab, detail::embed_classes));
    embed_backward_kernel<P><<<blocks, 256, 0, stream>>>(g);
    check(cudaGetLastError(), "embed_backward");
}

/// Softmax of one row of logits, and its loss, by one block; with gradients the logits become
/// scale (softmax - target). The row is read twice, the second time from the L2 cache.
template <class P>
__global__ void __launch_bounds__(512)
    head_row_kernel(const HeadLossArgs<P> a, long long first, long long stride, float* losses) {
    constexpr float log2e = 1.4426950408889634f;
    const long long row = first + blockIdx.x;
    typename P::activation* const logits = a.logits + blockIdx.x * stride;
    const int target = a.targets[row], thread = static_cast<int>(threadIdx.x);
    const bool counts = row_place(a.rows, row).live(a.rows) && target >= 0;
    const bool known = target < a.vocab;
    if (!counts) {
        if (thread == 0) losses[row] = 0;
        if (a.grad_y == nullptr) return;
        const float zero[8] = {};
        for (int c = thread * 8; c < a.vocab; c += 512 * 8) store_eight<false>(logits + c, zero, a.vocab - c);
        return;
    }

    __shared__ float tops[16], sums[16];
    const float at_target = thread == 0 && known ? to_float(logits[target]) : 0.f;
    float top = -INFINITY, sum = 0;  // sum of 2^(x - top) with x in units of log 2
    const auto take = [&](const float(&x)[8]) {
        float most = x[0];
#pragma unroll
        for (int e = 1; e < 8; ++e) most = fmaxf(most, x[e]);
        if (most > top) sum *= exp2f(top - most), top = most;
#pragma unroll
        for (int e = 0; e < 8; ++e) sum += exp2f(x[e] - top);
    };
    const int whole = a.vocab / 8 * 8;
#pragma unroll 4
    for (int c = thread * 8; c < whole; c += 512 * 8) {
        const auto raw = load_eight<true>(logits + c, 8);
        float x[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) x[e] = to_float(raw.x[e]) * log2e;
        take(x);
    }
    if (thread < a.vocab - whole) {
        const float x = to_float(logits[whole + thread]) * log2e;
        if (x > top) sum *= exp2f(top - x), top = x;
        sum += exp2f(x - top);
    }
    // All threads' sums in one, in a fixed order.
    const float own = top;
#pragma unroll
    for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
    if (thread % 32 == 0) tops[thread / 32] = top;
    __syncthreads();
    for (int w = 0; w < 16; ++w) top = fmaxf(top, tops[w]);
    sum = warp_sum(own == -INFINITY ? 0.f : sum * exp2f(own - top));
    if (thread % 32 == 0) sums[thread / 32] = sum;
    __syncthreads();
    sum = 0;
    for (int w = 0; w < 16; ++w) sum += sums[w];

    if (thread == 0) losses[row] = known ? (log2f(sum) + top) / log2e - at_target : __int_as_float(0x7fffffff);
    if (a.grad_y == nullptr) return;
    const float scale = static_cast<float>(a.scale), share = scale / sum;
    for (int c = thread * 8; c < whole; c += 512 * 8) {
        const auto raw = load_eight<true>(logits + c, 8);
        float x[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) {
            x[e] = exp2f(to_float(raw.x[e]) * log2e - top) * share;
            if (c + e == target) x[e] -= scale;
        }
        store_eight<true>(logits + c, x, 8);
    }
    if (thread < a.vocab - whole) {
        const int c = whole + thread;
        float x = exp2f(to_float(logits[c]) * log2e - top) * share;
        if (c == target) x -= scale;
        logits[c] = from_float<typename P::activation>(x);
    }
}

constexpr std::size_t head_loss_scratch(long long rows) { return static_cast<std::size_t>(rows) * sizeof(float); }

/// See HeadLossArgs. Three products a chunk; grad_weight is read and written once a chunk, so that small chunks cost.
/// Dead rows of y become zero. A target outside the vocabulary makes the loss NaN.
/// @param products  as class products
template <class P, class Products>
void head_loss(const HeadLossArgs<P>& a, Products& products, void* scratch, cudaStream_t stream) {
    detail::check_rows(a.rows, a.width, "head_loss");
    if (a.chunk < 1) throw error("head_loss: chunk must be at least 1; give scratch for the logits of one row or more");
    const long long rows = a.rows.capacity(), stride = logit_stride(a.vocab);
    if (rows < 1) return;
    auto* losses = static_cast<float*>(scratch);
    if (a.grad_y != nullptr) clear_dead_rows(a.rows, a.width, const_cast<typename P::activation*>(a.y), stream);
    for (long long first = 0; first < rows; first += a.chunk) {
        const int now = static_cast<int>(std::min<long long>(a.chunk, rows - first));
        products({.m = now,
                  .n = a.vocab,
                  .k = a.width,
                  .b_transposed = true,
                  .a = a.y + first * a.width,
                  .b = a.weight,
                  .a_stride = a.width,
                  .b_stride = a.width,
                  .c_stride = stride},
                 a.logits, stream);
        head_row_kernel<P><<<static_cast<unsigned>(now), 512, 0, stream>>>(a, first, stride, losses);
        check(cudaGetLastError(), "head_loss");
        if (a.grad_y == nullptr) continue;
        products({.m = now,
                  .n = a.width,
                  .k = a.vocab,
                  .a = a.logits,
                  .b = a.weight,
                  .a_stride = stride,
                  .b_stride = a.width,
                  .c_stride = a.width},
                 a.grad_y + first * a.width, stream);
        products({.m = a.vocab,
                  .n = a.width,
                  .k = now,
                  .a_transposed = true,
                  .a = a.logits,
                  .b = a.y + first * a.width,
                  .a_stride = stride,
                  .b_stride = a.width,
                  .c_stride = a.width,
                  .beta = 1},
                 a.grad_weight, stream);
    }
    add_sum(losses, rows, a.loss_sum, "head_loss", stream);
}

}  // namespace sdepth::inline v0::on_cuda
