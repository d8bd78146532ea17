// SPDX-License-Identifier: MIT
// Attention on the GPU: picks the kernel for the head size and the architecture. Kernels live beside this file; they
// follow FlashAttention-2 (arXiv 2307.08691) and, for Hopper, FlashAttention-3 (arXiv 2407.08608). Rank 5.
#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <string>
#include <type_traits>

#include "sdepth/error.hpp"
#include "sdepth/kernels/cuda/architecture.cuh"
#include "sdepth/kernels/cuda/attention_backward.cuh"
#include "sdepth/kernels/cuda/attention_backward_portable.cuh"
#include "sdepth/kernels/cuda/attention_forward.cuh"
#include "sdepth/kernels/cuda/attention_forward_portable.cuh"
#include "sdepth/ops/attention.hpp"

namespace sdepth::inline v0::on_cuda {

namespace detail {

inline void check_sizes(const AttentionArgs<__nv_bfloat16>& a, const char* what) {
    const std::string name(what);
    if (a.head_dim != 64 && a.head_dim != 128)
        throw error(name + ": head_dim " + std::to_string(a.head_dim) + " has no kernel; use 64 or 128");
    if (a.kv_heads < 1 || a.heads % a.kv_heads != 0)
        throw error(name + ": heads must be a multiple of kv_heads; give each KV head the same number of query heads");
    if ((a.first == nullptr) != (a.last == nullptr))
        throw error(name + ": first and last must both be given or both be null; pass the two arrays together");
    if (a.window != 0 && (a.first != nullptr || !a.causal))
        throw error(name + ": window needs plain causal visibility; express other windows by first and last");
    if (a.batch < 1 || a.queries.capacity < 1 || a.keys.capacity < 1)
        throw error(name + ": no rows; give at least one sequence with one query and one key row");
}

/// Calls f with the backward kernel's tile.
template <class Arch, class F>
constexpr auto with_backward_tile(int head_dim, F f) {
    if constexpr (std::is_same_v<Arch, portable>)
        return head_dim == 64 ? f(portable_backward_tile<64>{}) : f(portable_backward_tile<128>{});
    else
        return head_dim == 64 ? f(backward_tile<64, 3, true>{}) : f(backward_tile<128, 2, false>{});
}

/// All steps of the backward but the last.
template <class Arch, class Tile>
backward_scratch attention_backward_sums(const AttentionBackwardArgs<__nv_bfloat16>& g, void* scratch,
                                         cudaStream_t stream) {
    if constexpr (std::is_same_v<Arch, portable>)
        return attention_backward_portable<Tile>(g, scratch, stream);
    else
        return attention_backward_launch<Tile>(g, scratch, stream);
}

}  // namespace detail

/// o and lse of AttentionArgs, which has the shapes, on one stream; needs no scratch. Throws sdepth::error where
/// head_dim is not 64 or 128, heads no multiple of kv_heads, there are no rows, or visibility is given in two ways.
template <class Arch>
void attention_forward(const AttentionArgs<__nv_bfloat16>& a, cudaStream_t stream) {
    detail::check_sizes(a, "attention_forward");
    if constexpr (std::is_same_v<Arch, portable>) {
        a.head_dim == 64 ? attention_forward_portable<portable_forward_tile<64, 128, 1, 2>>(a, stream)
                         : attention_forward_portable<portable_forward_tile<128, 64, 1, 2>>(a, stream);
    } else {
        // Large query blocks read keys and values less often; small ones fill the processors better.
        const long rows = static_cast<long>(a.batch) * a.heads * a.queries.capacity;
        const bool large = a.queries.capacity >= 8192 || (a.head_dim == 64 && rows >= 1 << 19);
        if (a.head_dim == 64)
            large ? attention_forward_launch<forward_tile<64, 3, 128, 2, true>>(a, stream)
                  : attention_forward_launch<forward_tile<64, 2, 128, 4, false>>(a, stream);
        else
            large ? attention_forward_launch<forward_tile<128, 3, 80, 2, true>>(a, stream)
                  : attention_forward_launch<forward_tile<128, 2, 128, 2, true>>(a, stream);
    }
}

/// Bytes of scratch for attention_backward: above all grad_q in fp32.
template <class Arch>
constexpr std::size_t attention_backward_scratch(const AttentionArgs<__nv_bfloat16>& a) {
    return detail::with_backward_tile<Arch>(a.head_dim, [&](auto tile) {
        backward_scratch s{};
        return backward_layout<decltype(tile)>(a, nullptr, s);
    });
}

/// All gradients of AttentionBackwardArgs on one stream, bit for bit the same each time. `scratch`: 256-byte aligned,
/// any content. Throws like attention_forward.
template <class Arch>
void attention_backward(const AttentionBackwardArgs<__nv_bfloat16>& g, void* scratch, cudaStream_t stream) {
    detail::check_sizes(g.forward, "attention_backward");
    detail::with_backward_tile<Arch>(g.forward.head_dim, [&](auto tile) {
        using Tile = decltype(tile);
        attention_finish<Tile>(g, detail::attention_backward_sums<Arch, Tile>(g, scratch, stream), stream);
    });
}

}  // namespace sdepth::inline v0::on_cuda
