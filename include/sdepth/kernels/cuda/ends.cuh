// SPDX-License-Identifier: MIT
// The model's ends: embedding, and the output head with its cross-entropy. Rank 5.
#pragma once

#include <algorithm>
#include <cstddef>

#include "sdepth/kernels/cuda/fragments.cuh"
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
/// scale (softmax - target). The row waits in shared memory between its sum and its softmax.
///
/// The products before and after want a vocabulary that is a multiple of 8. The columns from `whole` = 8 floor(V / 8)
/// on are done here: their logits, and their part of grad_y, to which the product adds.
template <class P>
__global__ void __launch_bounds__(512, 2)
    head_row_kernel(const HeadLossArgs<P> a, long long first, long long stride, float* losses) {
    using activation = typename P::activation;
    constexpr int threads = 512, warps = threads / 32, ahead = 4;
    extern __shared__ __align__(16) unsigned char raw_row[];
    auto* const held = reinterpret_cast<activation*>(raw_row);
    __shared__ float tops[warps], sums[warps], rest[8];
    const long long row = first + blockIdx.x;
    activation* const logits = a.logits + blockIdx.x * stride;
    const int target = a.targets[row], thread = static_cast<int>(threadIdx.x), whole = a.vocab / 8 * 8;
    const int lane = thread % 32, warp = thread / 32;
    const bool counts = row_place(a.rows, row).live(a.rows) && target >= 0, known = target < a.vocab;
    if (!counts) {
        if (thread == 0) losses[row] = 0;
        if (a.grad_y == nullptr) return;
        const float zero[8] = {};
        for (int c = thread * 8; c < a.vocab; c += threads * 8) store_eight<false>(logits + c, zero, a.vocab - c);
        for (int c = thread; whole < a.vocab && c < a.width; c += threads)
            a.grad_y[row * a.width + c] = from_float<activation>(0.f);
        return;
    }

    float top = -INFINITY, sum = 0;  // sum of 2^(x - top), x in units of log 2
    for (int begin = thread * 8; begin < whole; begin += ahead * threads * 8) {
        eight<activation> raw[ahead];
#pragma unroll
        for (int u = 0; u < ahead; ++u)
            if (begin + u * threads * 8 < whole) raw[u] = load_eight<true>(logits + begin + u * threads * 8, 8);
#pragma unroll
        for (int u = 0; u < ahead; ++u) {
            const int c = begin + u * threads * 8;
            if (c >= whole) continue;
            *reinterpret_cast<eight<activation>*>(held + c) = raw[u];
            float x[8], most = -INFINITY;
#pragma unroll
            for (int e = 0; e < 8; ++e) x[e] = to_float(raw[u].x[e]) * log2e, most = fmaxf(most, x[e]);
            if (most > top) sum *= exp2_fast(top - most), top = most;
#pragma unroll
            for (int e = 0; e < 8; ++e) sum += exp2_fast(x[e] - top);
        }
    }
    if (warp < a.vocab - whole) {  // one warp a column of the rest
        float x = 0;
        for (int c = lane; c < a.width; c += 32)
            x += to_float(a.y[row * a.width + c]) *
                 to_float(a.weight[static_cast<long long>(whole + warp) * a.width + c]);
        x = to_float(from_float<activation>(warp_sum(x)));
        if (lane == 0) {
            rest[warp] = x;
            x *= log2e;
            if (x > top) sum *= exp2_fast(top - x), top = x;
            sum += exp2_fast(x - top);
        }
    }
    // All threads' sums in one, in a fixed order.
    const float own = top;
#pragma unroll
    for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
    if (lane == 0) tops[warp] = top;
    __syncthreads();
    top = tops[lane % warps];
#pragma unroll
    for (int step = 16; step > 0; step /= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
    sum = warp_sum(own == -INFINITY ? 0.f : sum * exp2_fast(own - top));
    if (lane == 0) sums[warp] = sum;
    __syncthreads();
    sum = warp_sum(lane < warps ? sums[lane] : 0.f);

    const auto logit = [&](int c) { return c < whole ? to_float(held[c]) : rest[c - whole]; };
    if (thread == 0) losses[row] = known ? (log2f(sum) + top) / log2e - logit(target) : __int_as_float(0x7fffffff);
    if (a.grad_y == nullptr) return;
    const float scale = static_cast<float>(a.scale), share = scale / sum;
    const auto softmax = [&](float x) { return exp2_fast(x * log2e - top) * share; };
    for (int c = thread * 8; c < whole; c += threads * 8) {
        const auto raw = *reinterpret_cast<const eight<activation>*>(held + c);
        float x[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) x[e] = softmax(to_float(raw.x[e]));
        store_eight<true>(logits + c, x, 8);
    }
    const int left = a.vocab - whole;
    const auto gradient = [&](int c) { return softmax(logit(c)) - (c == target ? scale : 0.f); };
    if (thread < left) logits[whole + thread] = from_float<activation>(gradient(whole + thread));
    if (left > 0)
        for (int c = thread; c < a.width; c += threads) {
            float part = 0;
            for (int j = 0; j < left; ++j)
                part += gradient(whole + j) * to_float(a.weight[static_cast<long long>(whole + j) * a.width + c]);
            a.grad_y[row * a.width + c] = from_float<activation>(part);
        }
    __syncthreads();
    if (thread == 0 && target < whole) logits[target] = from_float<activation>(gradient(target));
}

constexpr std::size_t head_loss_scratch(long long rows) { return static_cast<std::size_t>(rows) * sizeof(float); }

/// See HeadLossArgs. Three products a chunk; grad_weight is read and written once a chunk, so that small chunks cost.
/// Dead rows of y become zero. A target outside the vocabulary makes the loss NaN. Vocabularies up to 115,712.
/// @param products  as class products
template <class P, class Products>
void head_loss(const HeadLossArgs<P>& a, Products& products, void* scratch, cudaStream_t stream) {
    detail::check_rows(a.rows, a.width, "head_loss");
    if (a.chunk < 1) throw error("head_loss: chunk must be at least 1; give scratch for the logits of one row or more");
    const long long rows = a.rows.capacity(), stride = logit_stride(a.vocab);
    if (rows < 1) return;
    const std::size_t held = static_cast<std::size_t>(stride) * sizeof(typename P::activation);
    if (held > 226u << 10) throw error("head_loss: a vocabulary of that size has no kernel; use at most 115000 tokens");
    check(cudaFuncSetAttribute(head_row_kernel<P>, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(held)),
          "head_loss");
    auto* losses = static_cast<float*>(scratch);
    if (a.grad_y != nullptr) clear_dead_rows(a.rows, a.width, const_cast<typename P::activation*>(a.y), stream);
    const int whole = a.vocab / 8 * 8, left = a.vocab - whole;  // see head_row_kernel
    for (long long first = 0; first < rows; first += a.chunk) {
        const int now = static_cast<int>(std::min<long long>(a.chunk, rows - first));
        const auto* const y = a.y + first * a.width;
        products({.m = now,
                  .n = whole,
                  .k = a.width,
                  .b_transposed = true,
                  .a = y,
                  .b = a.weight,
                  .a_stride = a.width,
                  .b_stride = a.width,
                  .c_stride = stride},
                 a.logits, stream);
        head_row_kernel<P><<<static_cast<unsigned>(now), 512, held, stream>>>(a, first, stride, losses);
        check(cudaGetLastError(), "head_loss");
        if (a.grad_y == nullptr) continue;
        products({.m = now,
                  .n = a.width,
                  .k = whole,
                  .a = a.logits,
                  .b = a.weight,
                  .a_stride = stride,
                  .b_stride = a.width,
                  .c_stride = a.width,
                  .beta = left > 0 ? 1.f : 0.f},
                 a.grad_y + first * a.width, stream);
        matrix_product weights{.m = whole,
                               .n = a.width,
                               .k = now,
                               .a_transposed = true,
                               .a = a.logits,
                               .b = y,
                               .a_stride = stride,
                               .b_stride = a.width,
                               .c_stride = a.width,
                               .beta = 1};
        products(weights, a.grad_weight, stream);
        weights.m = left;
        weights.a += whole;
        products(weights, a.grad_weight + static_cast<long long>(whole) * a.width, stream);
    }
    add_sum(losses, rows, a.loss_sum, "head_loss", stream);
}

}  // namespace sdepth::inline v0::on_cuda
