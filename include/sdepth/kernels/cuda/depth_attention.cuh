// SPDX-License-Identifier: MIT
// MoDA's depth branch for sm_90a, forward and backward: bound by memory, every slot read once. Rank 5.
//
// One warp: one KV head of one token, all query heads of its group (up to 16). With K, V the slots [slots, h]; l is a
// thread's lane:
//
//  1. The copy engine brings the slots in chunks of 8 or 16 KB (depth_tiles.cuh), swizzled; each warp has its own ring
//  and never meets others.
//  2. S^T = K q^T on 16 slots x 8 heads: slots fill the tensor core's rows, so that a group of eight wastes nothing.
//  3. Forward: softmax over slots that begins with the sequence branch: maximum = its log-sum-exp, sum = 1, o = its o.
//  4. Forward: o += P V, P transposed in registers; after the last chunk divide by the sum, joint log-sum-exp.
//  5. Backward: P = exp(S - joint lse), dP^T = V grad_o^T, dS = P (dP - D), D = o . grad_o (in the code `drop`, as D
//     is the head size).
//  6. Backward: grad_q += dS K;  grad_v = P^T grad_o and grad_k = dS^T q, columns permuted so that a thread ends with
//     16 bytes in a row of memory; or they are added to sums, of which this warp alone has this row's and head's; or P
//     and dS are stored for depth_slot_gradients.
//
// Masked slots may hold anything: their rows are overwritten by zeros in shared memory.
#pragma once

#include <cuda_bf16.h>

#include <algorithm>
#include <cstdint>
#include <type_traits>

#include "sdepth/kernels/cuda/architecture.cuh"
#include "sdepth/kernels/cuda/attention_checks.hpp"
#include "sdepth/kernels/cuda/depth_tiles.cuh"
#include "sdepth/kernels/cuda/error.cuh"
#include "sdepth/kernels/cuda/fragments.cuh"
#include "sdepth/kernels/cuda/mbarrier.cuh"
#include "sdepth/kernels/cuda/tma.cuh"
#include "sdepth/ops/depth_attention.hpp"

namespace sdepth::inline v0::on_cuda {

/// Steps 1 to 4.
template <class Tile>
__device__ __forceinline__ void depth_forward_body(const CUtensorMap& slot_map, const depth_view& a,
                                                   const __nv_bfloat16* q_all, __nv_bfloat16* o_all, float* lse_all) {
    constexpr int D = Tile::dim, U = Tile::tiles, M = Tile::chunk / 16;
    extern __shared__ __align__(1024) unsigned char raw[];
    depth_stream<Tile> stream(*reinterpret_cast<typename Tile::shared*>(raw), slot_map, a);
    const int lane = stream.lane(), group = a.group();
    const float c = a.scale * log2e;

    int token, kv;
    for (int round = 0; stream.task(round, token, kv); ++round) {
        const bool live = a.live(token);
        const int row = a.row(token);
        const __nv_bfloat16* q_row = q_all + static_cast<std::int64_t>(token) * a.q_stride + kv * group * D;
        __nv_bfloat16* o_row = o_all + (static_cast<std::int64_t>(token) * a.heads + kv * group) * D;
        float* lse_row = lse_all + static_cast<std::int64_t>(token) * a.heads + kv * group;

        // 3. Begin with the sequence branch. Maxima and sums belong to heads 2 (l % 4) and the next, o to head l / 4.
        std::uint32_t q[U][D / 8];
        load_heads<Tile>(q, q_row, group);
        float o[D / 8][4] = {}, m[U][2], sum[U][2];
#pragma unroll
        for (int u = 0; u < U; ++u) {
            const int head = 8 * u + lane / 4;
#pragma unroll
            for (int i = 0; i < D / 8; ++i)
                if (live && head < group) {
                    const float2 x = __bfloat1622float2(
                        *reinterpret_cast<const __nv_bfloat162*>(o_row + head * D + 8 * i + lane % 4 * 2));
                    o[i][2 * u] = x.x, o[i][2 * u + 1] = x.y;
                }
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int own = 8 * u + lane % 4 * 2 + e;
                m[u][e] = live && own < group ? lse_row[own] * log2e : -INFINITY;
                sum[u][e] = m[u][e] == -INFINITY ? 0.f : 1.f;
            }
        }

        for (int chunk = 0; chunk < stream.chunks(); ++chunk) {
            unsigned seen[2];
            const unsigned char* tile = stream.get(row, live, chunk * Tile::chunk, seen);
            // 2. S^T.
            float s[M][U][4] = {};
#pragma unroll
            for (int i = 0; i < M; ++i)
#pragma unroll
                for (int kk = 0; kk < D / 16; ++kk) {
                    std::uint32_t k[4];
                    load_matrices(k, stream.piece(tile, 0, i, kk));
#pragma unroll
                    for (int u = 0; u < U; ++u) multiply_16x8x16(s[i][u], k, q[u][2 * kk], q[u][2 * kk + 1]);
                }
            // 3. Softmax over slots, the rows of S^T.
            float factor[U][2];
#pragma unroll
            for (int u = 0; u < U; ++u)
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    float top = m[u][e];
#pragma unroll
                    for (int i = 0; i < 2 * M; ++i) {
                        float& x = s[i / 2][u][i % 2 * 2 + e];
                        const bool on = seen[i / 4] >> (i % 4 * 8 + lane / 4) & 1;
                        x = on ? x * c : -INFINITY;
                        top = fmaxf(top, x);
                    }
#pragma unroll
                    for (int step = 4; step < 32; step *= 2) top = fmaxf(top, __shfl_xor_sync(~0u, top, step));
                    const float shift = top == -INFINITY ? 0.f : top;
                    float part = 0;
#pragma unroll
                    for (int i = 0; i < 2 * M; ++i) {
                        float& x = s[i / 2][u][i % 2 * 2 + e];
                        x = exp2_fast(x - shift);
                        part += x;
                    }
#pragma unroll
                    for (int step = 4; step < 32; step *= 2) part += __shfl_xor_sync(~0u, part, step);
                    factor[u][e] = exp2_fast(m[u][e] - shift);
                    sum[u][e] = sum[u][e] * factor[u][e] + part, m[u][e] = top;
                }
#pragma unroll
            for (int u = 0; u < U; ++u) {  // 4. o.
                const float even = __shfl_sync(~0u, factor[u][0], lane / 8),
                            odd = __shfl_sync(~0u, factor[u][1], lane / 8);
                const float own = lane / 4 % 2 == 0 ? even : odd;
#pragma unroll
                for (int i = 0; i < D / 8; ++i) o[i][2 * u] *= own, o[i][2 * u + 1] *= own;
            }
#pragma unroll
            for (int i = 0; i < M; ++i) {
                std::uint32_t p[4] = {};
#pragma unroll
                for (int u = 0; u < U; ++u) {
                    p[u] = transpose_matrix(pack_bf16(s[i][u][0], s[i][u][1]));
                    p[2 + u] = transpose_matrix(pack_bf16(s[i][u][2], s[i][u][3]));
                }
#pragma unroll
                for (int kk = 0; kk < D / 16; ++kk) {
                    std::uint32_t v[4];
                    load_matrices_transposed(v, stream.piece(tile, 1, i, kk));
                    multiply_16x8x16(o[2 * kk], p, v[0], v[1]);
                    multiply_16x8x16(o[2 * kk + 1], p, v[2], v[3]);
                }
            }
            stream.release();
        }

        if (!live) continue;
#pragma unroll
        for (int u = 0; u < U; ++u) {  // 4. Divide and store.
            const int head = 8 * u + lane / 4;
            const float even = __shfl_sync(~0u, sum[u][0], lane / 8), odd = __shfl_sync(~0u, sum[u][1], lane / 8);
            const float own = lane / 4 % 2 == 0 ? even : odd, inverse = own == 0 ? 0.f : 1.f / own;
            if (head < group)
#pragma unroll
                for (int i = 0; i < D / 8; ++i)
                    *reinterpret_cast<std::uint32_t*>(o_row + head * D + 8 * i + lane % 4 * 2) =
                        pack_bf16(o[i][2 * u] * inverse, o[i][2 * u + 1] * inverse);
#pragma unroll
            for (int e = 0; e < 2; ++e) {
                const int mine = 8 * u + lane % 4 * 2 + e;
                if (lane < 4 && mine < group)
                    lse_row[mine] = sum[u][e] == 0 ? -INFINITY : (m[u][e] + log2f(sum[u][e])) * ln2;
            }
        }
    }
}

template <class Tile>
__global__ void __launch_bounds__(Tile::threads, 1)
    depth_forward_kernel(const __grid_constant__ CUtensorMap slot_map, const depth_view a, const __nv_bfloat16* q_all,
                         __nv_bfloat16* o_all, float* lse_all) {
    if constexpr (SDEPTH_HOPPER_CODE)
        depth_forward_body<Tile>(slot_map, a, q_all, o_all, lse_all);
    else
        __trap();  // see require_hopper
}

/// Where the backward leaves its results; see DepthAttentionBackwardArgs.
struct depth_gradients {
    __nv_bfloat16* grad_q;
    bool stored;  // slots' gradients, to where grad_map says
    __nv_bfloat16 *p, *ds;
    float* slot_sum;
};

/// Steps 1, 2, 5 and 6. `adds`: whether there is a slot_sum; a test at run time costs the others 1 to 2 %
/// (moda/depth_ms).
template <class Tile, bool adds>
__device__ __forceinline__ void depth_backward_body(const CUtensorMap& slot_map, const CUtensorMap& grad_map,
                                                    const depth_view& a, const __nv_bfloat16* q_all,
                                                    const __nv_bfloat16* o_all, const float* lse_all,
                                                    const __nv_bfloat16* grad_o_all, const depth_gradients& out) {
    constexpr int D = Tile::dim, U = Tile::tiles, M = Tile::chunk / 16;
    extern __shared__ __align__(1024) unsigned char raw[];
    depth_stream<Tile> stream(*reinterpret_cast<typename Tile::shared*>(raw), slot_map, a);
    const int lane = stream.lane(), group = a.group();
    const float c = a.scale * log2e;

    int token, kv;
    for (int round = 0; stream.task(round, token, kv); ++round) {
        const bool live = a.live(token);
        const int row = a.row(token);
        const std::int64_t at_q = static_cast<std::int64_t>(token) * a.q_stride + kv * group * D;
        const std::int64_t at_o = (static_cast<std::int64_t>(token) * a.heads + kv * group) * D;
        const int there = live ? group : 0;  // a dead token is one without heads
        std::uint32_t q[U][D / 8], grad_o[U][D / 8];
        load_heads<Tile>(q, q_all + at_q, there);
        load_heads<Tile>(grad_o, grad_o_all + at_o, there);
        // 5. D and the joint log-sum-exp.
        float lse[U][2], drop[U][2] = {}, dq[D / 8][4] = {};
#pragma unroll
        for (int u = 0; u < U; ++u) {
#pragma unroll
            for (int part = 0; part < Tile::parts; ++part) {
                uint4 x[2], y[2];
                load_pair<D>(x[0], x[1], o_all + at_o, there, u, part);
                load_pair<D>(y[0], y[1], grad_o_all + at_o, there, u, part);
#pragma unroll
                for (int e = 0; e < 2; ++e) {
                    const auto* xs = reinterpret_cast<const __nv_bfloat162*>(&x[e]);
                    const auto* ys = reinterpret_cast<const __nv_bfloat162*>(&y[e]);
#pragma unroll
                    for (int i = 0; i < 4; ++i) {
                        const float2 r = __bfloat1622float2(xs[i]), t = __bfloat1622float2(ys[i]);
                        drop[u][e] += r.x * t.x + r.y * t.y;
                    }
                }
            }
#pragma unroll
            for (int e = 0; e < 2; ++e) {
#pragma unroll
                for (int step = 4; step < 32; step *= 2) drop[u][e] += __shfl_xor_sync(~0u, drop[u][e], step);
                const int head = 8 * u + lane % 4 * 2 + e;
                const float x =
                    head < there ? lse_all[static_cast<std::int64_t>(token) * a.heads + kv * group + head] : INFINITY;
                lse[u][e] = x == -INFINITY ? INFINITY : x * log2e;
            }
        }

        for (int chunk = 0; chunk < stream.chunks(); ++chunk) {
            unsigned seen[2];
            unsigned char* const tile = stream.get(row, live, chunk * Tile::chunk, seen);
#pragma unroll 1
            for (int i = 0; i < M; ++i) {
                // 2, 5. S^T, dP^T, P, dS for 16 slots.
                float s[U][4] = {}, dp[U][4] = {};
#pragma unroll
                for (int kk = 0; kk < D / 16; ++kk) {
                    std::uint32_t k[4], v[4];
                    load_matrices(k, stream.piece(tile, 0, i, kk));
                    load_matrices(v, stream.piece(tile, 1, i, kk));
#pragma unroll
                    for (int u = 0; u < U; ++u) {
                        multiply_16x8x16(s[u], k, q[u][2 * kk], q[u][2 * kk + 1]);
                        multiply_16x8x16(dp[u], v, grad_o[u][2 * kk], grad_o[u][2 * kk + 1]);
                    }
                }
                const auto counts = [&](int r) {
                    return ((i < 2 ? seen[0] : seen[1]) >> (i % 2 * 16 + 8 * r + lane / 4) & 1) != 0;
                };
                std::uint32_t p[U][2], ds[U][2], ds_rows[4] = {};
#pragma unroll
                for (int u = 0; u < U; ++u)
#pragma unroll
                    for (int r = 0; r < 2; ++r) {
                        const bool on = counts(r);
                        float w[2], g[2];
#pragma unroll
                        for (int e = 0; e < 2; ++e) {
                            w[e] = on ? exp2_fast(s[u][2 * r + e] * c - lse[u][e]) : 0.f;
                            g[e] = w[e] * (dp[u][2 * r + e] - drop[u][e]);
                        }
                        p[u][r] = pack_bf16(w[0], w[1]), ds[u][r] = pack_bf16(g[0], g[1]);
                        ds_rows[2 * r + u] = transpose_matrix(ds[u][r]);
                    }
#pragma unroll
                for (int kk = 0; kk < D / 16; ++kk) {  // 6. grad_q.
                    std::uint32_t k[4];
                    load_matrices_transposed(k, stream.piece(tile, 0, i, kk));
                    multiply_16x8x16(dq[2 * kk], ds_rows, k[0], k[1]);
                    multiply_16x8x16(dq[2 * kk + 1], ds_rows, k[2], k[3]);
                }
                // 6. Slots' gradients.
                const int slot = chunk * Tile::chunk + 16 * i + lane / 4;
                if (adds || out.stored) {
                    __syncwarp();  // all have read these rows of keys and values; the gradients take their place
#pragma unroll
                    for (int which = 0; which < 2; ++which)
#pragma unroll 1
                        for (int part = 0; part < Tile::parts; ++part) {
                            float sum[8][4] = {};
#pragma unroll
                            for (int u = 0; u < U; ++u) {
                                uint4 even, odd;
                                std::uint32_t b[8];
                                load_pair<D>(even, odd, which == 0 ? q_all + at_q : grad_o_all + at_o, there, u, part);
                                interleave(b, even, odd);
#pragma unroll
                                for (int j = 0; j < 8; ++j) multiply_16x8x8(sum[j], which == 0 ? ds[u] : p[u], b[j]);
                            }
                            const float scale = which == 0 ? a.scale : 1.f;
                            if (adds)
#pragma unroll
                                for (int r = 0; r < 2; ++r)
                                    if (counts(r))
                                        add_slot_gradient(
                                            out.slot_sum + (a.key(row, slot + 8 * r, kv) + which) * D + 64 * part, sum,
                                            r, scale);
                            if (adds && !out.stored) continue;
#pragma unroll
                            for (int r = 0; r < 2; ++r)
#pragma unroll
                                for (int e = 0; e < 2; ++e) {
                                    std::uint32_t w[4];
#pragma unroll
                                    for (int j = 0; j < 4; ++j)
                                        w[j] =
                                            pack_bf16(sum[2 * j][2 * r + e] * scale, sum[2 * j + 1][2 * r + e] * scale);
                                    const int at = 16 * i + 8 * r + lane / 4, column = 2 * (lane % 4) + e;
                                    *reinterpret_cast<uint4*>(tile +
                                                              ((which * Tile::parts + part) * Tile::chunk + at) * 128 +
                                                              (column ^ at % 8) * 16) = uint4{w[0], w[1], w[2], w[3]};
                                }
                        }
                }
                if (out.p != nullptr) {
#pragma unroll
                    for (int u = 0; u < U; ++u)
#pragma unroll
                        for (int r = 0; r < 2; ++r)
#pragma unroll
                            for (int e = 0; e < 2; ++e) {
                                const int head = 8 * u + lane % 4 * 2 + e;
                                if (slot + 8 * r >= a.used || head >= there) continue;
                                const std::int64_t to =
                                    (static_cast<std::int64_t>(token) * a.slots + slot + 8 * r) * a.heads + kv * group +
                                    head;
                                out.p[to] = __ushort_as_bfloat16(static_cast<unsigned short>(p[u][r] >> 16 * e));
                                out.ds[to] = __ushort_as_bfloat16(static_cast<unsigned short>(ds[u][r] >> 16 * e));
                            }
                }
            }
            if (out.stored) stream.store(grad_map, chunk, token, kv);
            stream.release();
        }

#pragma unroll
        for (int u = 0; u < U; ++u)  // 6. grad_q, on top of the sequence branch's.
            if (8 * u + lane / 4 < there)
#pragma unroll
                for (int i = 0; i < D / 8; ++i) {
                    auto* const to = reinterpret_cast<std::uint32_t*>(out.grad_q + at_q + (8 * u + lane / 4) * D +
                                                                      8 * i + lane % 4 * 2);
                    const std::uint32_t was = *to;
                    const float2 x = __bfloat1622float2(*reinterpret_cast<const __nv_bfloat162*>(&was));
                    *to = pack_bf16(x.x + dq[i][2 * u] * a.scale, x.y + dq[i][2 * u + 1] * a.scale);
                }
    }
    if (lane == 0) wait_stores_done<0>();
}

template <class Tile, bool adds>
__global__ void __launch_bounds__(Tile::threads, 1)
    depth_backward_kernel(const __grid_constant__ CUtensorMap slot_map, const __grid_constant__ CUtensorMap grad_map,
                          const depth_view a, const __nv_bfloat16* q_all, const __nv_bfloat16* o_all,
                          const float* lse_all, const __nv_bfloat16* grad_o_all, const depth_gradients out) {
    if constexpr (SDEPTH_HOPPER_CODE)
        depth_backward_body<Tile, adds>(slot_map, grad_map, a, q_all, o_all, lse_all, grad_o_all, out);
    else
        __trap();  // see require_hopper
}

namespace detail {

template <class Tile>
CUtensorMap slot_map(const DepthAttentionArgs<__nv_bfloat16>& a, const __nv_bfloat16* slot_data) {
    const cuuint64_t row = 2 * Tile::dim * sizeof(__nv_bfloat16), slot = row * unsigned(a.kv_heads);
    const cuuint64_t sizes[5] = {64, cuuint64_t(a.used), 2 * Tile::parts, cuuint64_t(a.kv_heads),
                                 cuuint64_t(a.batch) * unsigned(a.ids != nullptr ? a.sequence : a.tokens.capacity)};
    const cuuint64_t strides[4] = {slot, 128, row, slot * unsigned(a.slots)};
    const cuuint32_t box[5] = {64, Tile::chunk, 2 * Tile::parts, 1, 1};
    return box_map<5>(slot_data, sizes, strides, box);
}

/// Calls f with the depth_tile for these sizes, which check_depth has seen.
template <bool writes, class F>
void with_depth_tile(int head_dim, int group, F f) {
    if (head_dim == 64)
        group <= 8 ? f(depth_tile<64, 1, writes>{}) : f(depth_tile<64, 2, writes>{});
    else
        group <= 8 ? f(depth_tile<128, 1, writes>{}) : f(depth_tile<128, 2, writes>{});
}

template <class Tile, class Kernel>
int depth_grid(Kernel* kernel, int tasks) {
    int device = 0, processors = 0;
    check(cudaGetDevice(&device), "depth_attention");
    check(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, device), "depth_attention");
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(sizeof(typename Tile::shared))),
          "depth_attention");
    return std::min(processors, (tasks + Tile::warps - 1) / Tile::warps);
}

}  // namespace detail

/// Merges the slots into o and lse on one stream; see DepthAttentionArgs. No slots, no work. Throws sdepth::error on
/// sizes without a kernel: head sizes other than 64 and 128, groups of more than 16 heads; on pointers that are null or
/// not aligned to 16 bytes, row strides that are too short or no multiple of 8, and a scale that is not positive.
template <class Arch>
void depth_attention_forward(const DepthAttentionArgs<__nv_bfloat16>& a, cudaStream_t stream) {
    static_assert(std::is_same_v<Arch, hopper>, "sdepth: depth attention has kernels for Hopper alone; use cuda<>");
    detail::check_depth(a, "depth_attention_forward");
    if (a.used == 0) return;
    require_hopper("depth_attention_forward");
    detail::with_depth_tile<false>(a.head_dim, a.heads / a.kv_heads, [&](auto tile) {
        using Tile = decltype(tile);
        const int grid = detail::depth_grid<Tile>(depth_forward_kernel<Tile>, a.batch * a.tokens.capacity * a.kv_heads);
        depth_forward_kernel<Tile><<<grid, Tile::threads, sizeof(typename Tile::shared), stream>>>(
            detail::slot_map<Tile>(a, a.slot), depth_view(a), a.q, a.o, a.lse);
        check(cudaGetLastError(), "depth_attention_forward");
    });
}

/// The depth branch's gradients on one stream; see DepthAttentionBackwardArgs. Throws like depth_attention_forward.
template <class Arch>
void depth_attention_backward(const DepthAttentionBackwardArgs<__nv_bfloat16>& g, cudaStream_t stream) {
    static_assert(std::is_same_v<Arch, hopper>, "sdepth: depth attention has kernels for Hopper alone; use cuda<>");
    const DepthAttentionArgs<__nv_bfloat16>& a = g.forward;
    detail::check_depth_backward(g, "depth_attention_backward");
    if (a.used == 0) return;
    require_hopper("depth_attention_backward");
    detail::with_depth_tile<true>(a.head_dim, a.heads / a.kv_heads, [&](auto tile) {
        using Tile = decltype(tile);
        auto* const kernel =
            g.slot_sum != nullptr ? depth_backward_kernel<Tile, true> : depth_backward_kernel<Tile, false>;
        const int grid = detail::depth_grid<Tile>(kernel, a.batch * a.tokens.capacity * a.kv_heads);
        kernel<<<grid, Tile::threads, sizeof(typename Tile::shared), stream>>>(
            detail::slot_map<Tile>(a, a.slot), detail::slot_map<Tile>(a, g.grad_slot != nullptr ? g.grad_slot : a.slot),
            depth_view(a), a.q, a.o, a.lse, g.grad_o,
            depth_gradients{g.grad_q, g.grad_slot != nullptr, g.p, g.ds, g.slot_sum});
        check(cudaGetLastError(), "depth_attention_backward");
    });
}

}  // namespace sdepth::inline v0::on_cuda
