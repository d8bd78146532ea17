// SPDX-License-Identifier: MIT
// Attention on the GPU: picks the kernel for the head size and the architecture. Kernels live beside this file; they
// follow FlashAttention-2 (arXiv 2307.08691) and, for Hopper, FlashAttention-3 (arXiv 2407.08608). Rank 5.
#pragma once

#include <cuda_bf16.h>

#include <cstddef>
#include <type_traits>

#include "sdepth/kernels/cuda/architecture.cuh"
#include "sdepth/kernels/cuda/attention_backward.cuh"
#include "sdepth/kernels/cuda/attention_backward_portable.cuh"
#include "sdepth/kernels/cuda/attention_checks.hpp"
#include "sdepth/kernels/cuda/attention_forward.cuh"
#include "sdepth/kernels/cuda/attention_forward_portable.cuh"
#include "sdepth/ops/attention.hpp"

namespace sdepth::inline v0::on_cuda {

namespace detail {

/// Forward tile for long sequences: large query blocks read keys and values less often.
template <int dim>
using long_forward_tile =
    std::conditional_t<dim == 64, forward_tile<64, 3, 128, 2, true>, forward_tile<128, 3, 80, 2, true>>;
/// For others: small ones fill the processors better.
template <int dim>
using short_forward_tile =
    std::conditional_t<dim == 64, forward_tile<64, 2, 128, 4, false>, forward_tile<128, 2, 128, 2, true>>;

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
    if constexpr (std::is_same_v<Arch, portable>) {
        return attention_backward_portable<Tile>(g, scratch, stream);
    } else {
        require_hopper("attention_backward");
        return attention_backward_launch<Tile>(g, scratch, stream);
    }
}

}  // namespace detail

/// o and lse of AttentionArgs, which has the shapes, on one stream; needs no scratch. Throws sdepth::error where
/// head_dim is not 64 or 128, heads no multiple of kv_heads, there are no rows, visibility is given in two ways, a
/// pointer is null or not aligned to 16 bytes, a row stride is no multiple of 8 or too short, or scale is not positive.
template <class Arch>
void attention_forward(const AttentionArgs<__nv_bfloat16>& a, cudaStream_t stream) {
    detail::check_forward(a, "attention_forward");
    if constexpr (std::is_same_v<Arch, portable>) {
        a.head_dim == 64 ? attention_forward_portable<portable_forward_tile<64, 128, 1, 2>>(a, stream)
                         : attention_forward_portable<portable_forward_tile<128, 64, 1, 2>>(a, stream);
    } else {
        require_hopper("attention_forward");
        const long rows = static_cast<long>(a.batch) * a.heads * a.queries.capacity;
        const bool large = a.queries.capacity >= 8192 || (a.head_dim == 64 && rows >= 1 << 19);
        if (a.head_dim == 64)
            large ? attention_forward_launch<detail::long_forward_tile<64>>(a, stream)
                  : attention_forward_launch<detail::short_forward_tile<64>>(a, stream);
        else
            large ? attention_forward_launch<detail::long_forward_tile<128>>(a, stream)
                  : attention_forward_launch<detail::short_forward_tile<128>>(a, stream);
    }
}

/// Bytes of scratch for attention_backward of exactly these sizes, above all grad_q in fp32: fewer rows can need more,
/// see heads_apart.
template <class Arch>
constexpr std::size_t attention_backward_scratch(const AttentionArgs<__nv_bfloat16>& a) {
    return detail::with_backward_tile<Arch>(a.head_dim, [&](auto tile) {
        backward_scratch s{};
        return backward_layout<decltype(tile)>(a, nullptr, s);
    });
}

/// All gradients of AttentionBackwardArgs on one stream, bit for bit the same each time. `scratch`: 256-byte aligned,
/// any content. Throws like attention_forward. Blocks of threads add to grad_q in turns, so each waits for others: on
/// Hopper all of them are to be on the device at once, elsewhere to start in the order of their numbers. That is so
/// where kernels beside it end by themselves; two of these at a time, on streams of different priority, may wait for
/// each other for ever.
template <class Arch>
void attention_backward(const AttentionBackwardArgs<__nv_bfloat16>& g, void* scratch, cudaStream_t stream) {
    detail::check_backward(g, scratch, "attention_backward");
    detail::check_pointer(g.grad_q, "attention_backward", "grad_q");
    detail::with_backward_tile<Arch>(g.forward.head_dim, [&](auto tile) {
        using Tile = decltype(tile);
        attention_finish<Tile>(g, detail::attention_backward_sums<Arch, Tile>(g, scratch, stream), stream);
    });
}

}  // namespace sdepth::inline v0::on_cuda
