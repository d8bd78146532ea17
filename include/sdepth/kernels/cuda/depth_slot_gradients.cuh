// SPDX-License-Identifier: MIT
// Gradients of MoDA's slots, summed over all layers that read them: bound by memory, nothing is read back.
// Rank 5.
//
// One warp: one KV head of one token, sixteen slots at a time.
//
//  1. For each reader: P^T and dS^T of the sixteen slots and up to eight heads as operand A, q and grad_o as operand B
//     with columns permuted as in depth_attention.cuh, sums in registers.
//  2. Store, 16 bytes in a row of memory for each thread.
#pragma once

#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>

#include "sdepth/kernels/cuda/attention_checks.hpp"
#include "sdepth/kernels/cuda/depth_tiles.cuh"
#include "sdepth/kernels/cuda/error.cuh"
#include "sdepth/kernels/cuda/fragments.cuh"
#include "sdepth/ops/depth_attention.hpp"

namespace sdepth::inline v0::on_cuda {

/// Step 2, for slots from .. from + 15, those before `end`, as keys (which = 0) or values (1): this
/// thread has slots l / 4 and eight further, dims 16 (l % 4) .. + 15 of its part of 64.
template <int D>
__device__ inline void store_slot_gradient(__nv_bfloat16* grad, const float (&sum)[8][4], float scale, int token,
                                           int from, int end, int slots, int kv_heads, int kv, int which, int part) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int r = 0; r < 2; ++r) {
        const int slot = from + 8 * r + lane / 4;
        if (slot >= end) continue;
        auto* const to = reinterpret_cast<uint4*>(
            grad + (((static_cast<std::int64_t>(token) * slots + slot) * kv_heads + kv) * 2 + which) * D + 64 * part +
            lane % 4 * 16);
#pragma unroll
        for (int e = 0; e < 2; ++e) {
            std::uint32_t w[4];
#pragma unroll
            for (int j = 0; j < 4; ++j)
                w[j] = pack_bf16(sum[2 * j][2 * r + e] * scale, sum[2 * j + 1][2 * r + e] * scale);
            to[e] = uint4{w[0], w[1], w[2], w[3]};
        }
    }
}

template <int D>
__global__ void __launch_bounds__(256)
    depth_slot_gradients_kernel(const __grid_constant__ DepthSlotGradientArgs<__nv_bfloat16> g) {
    const int lane = static_cast<int>(threadIdx.x) % 32, group = g.heads / g.kv_heads;
    const int id = static_cast<int>(blockIdx.x) * 8 + static_cast<int>(threadIdx.x) / 32;
    const int token = id / g.kv_heads, kv = id % g.kv_heads;
    if (token >= g.batch * g.tokens.capacity) return;
    const bool live = token % g.tokens.capacity < g.tokens.of(token / g.tokens.capacity);
    const std::int64_t at_q = static_cast<std::int64_t>(token) * g.q_stride() + kv * group * D;
    const std::int64_t at_o = (static_cast<std::int64_t>(token) * g.heads + kv * group) * D;

    for (int from = g.begin; from < g.end; from += 16)
        for (int part = 0; part < D / 64; ++part) {
            float sums[2][8][4] = {};  // of k and of v
            // 1. Sum over readers and heads.
            for (int r = 0; live && r < g.readers; ++r)
                for (int u = 0; 8 * u < group; ++u) {
                    std::uint32_t a[2][2] = {};
#pragma unroll
                    for (int half = 0; half < 2; ++half)
#pragma unroll
                        for (int e = 0; e < 2; ++e) {
                            const int slot = from + 8 * half + lane / 4, head = 8 * u + lane % 4 * 2 + e;
                            if (slot >= g.end || head >= group) continue;
                            const std::int64_t at =
                                (static_cast<std::int64_t>(token) * g.slots + slot) * g.heads + kv * group + head;
                            a[0][half] |= std::uint32_t{__bfloat16_as_ushort(g.reads[r].ds[at])} << 16 * e;
                            a[1][half] |= std::uint32_t{__bfloat16_as_ushort(g.reads[r].p[at])} << 16 * e;
                        }
#pragma unroll
                    for (int which = 0; which < 2; ++which) {
                        uint4 even, odd;
                        std::uint32_t b[8];
                        load_pair<D>(even, odd, which == 0 ? g.reads[r].q + at_q : g.reads[r].grad_o + at_o, group, u,
                                     part);
                        interleave(b, even, odd);
#pragma unroll
                        for (int j = 0; j < 8; ++j) multiply_16x8x8(sums[which][j], a[which], b[j]);
                    }
                }
#pragma unroll
            for (int which = 0; which < 2; ++which)  // 2. Store.
                store_slot_gradient<D>(g.grad_slot, sums[which], which == 0 ? static_cast<float>(g.scale) : 1.f, token,
                                       from, g.end, g.slots, g.kv_heads, kv, which, part);
        }
}

/// Slots' gradients on one stream; see DepthSlotGradientArgs. Throws sdepth::error where head_dim is not 64 or 128,
/// there are too many readers, slots lie outside, or a pointer is null or not aligned to 16 bytes.
inline void depth_slot_gradients(const DepthSlotGradientArgs<__nv_bfloat16>& g, cudaStream_t stream) {
    detail::check_slot_gradients(g, "depth_slot_gradients");
    const auto blocks = static_cast<unsigned>((g.batch * g.tokens.capacity * g.kv_heads + 7) / 8);
    if (g.head_dim == 64)
        depth_slot_gradients_kernel<64><<<blocks, 256, 0, stream>>>(g);
    else
        depth_slot_gradients_kernel<128><<<blocks, 256, 0, stream>>>(g);
    check(cudaGetLastError(), "depth_slot_gradients");
}

}  // namespace sdepth::inline v0::on_cuda
