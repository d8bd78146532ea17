// SPDX-License-Identifier: MIT
// What stands around MoDA's depth attention: slots written and their gradients read back, the share of the softmax that
// slots get, and attention to no key at all. Bound by memory. Rank 5.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "sdepth/error.hpp"
#include "sdepth/kernels/cuda/each_row.cuh"
#include "sdepth/kernels/cuda/error.cuh"
#include "sdepth/kernels/cuda/reduce.cuh"
#include "sdepth/kernels/cuda/vector.cuh"
#include "sdepth/ops/attention.hpp"
#include "sdepth/ops/depth_attention.hpp"

namespace sdepth::inline v0::on_cuda {

namespace detail {

/// Where a row's keys lie, in k and in the slots; column c of the keys or values of all KV heads: see `slot_column`.
struct slot_place {
    long long row, slot;

    template <class P>
    __device__ slot_place(const WriteSlotArgs<P>& a, const row_place& place) {
        const long long position = static_cast<long long>(place.sequence) * a.sequence + a.ids[place.row];
        const int width = a.kv_heads * a.head_dim;
        row = (a.every_row ? position : place.row) * width;
        slot = (position * a.slots + a.slot) * 2 * width;
    }
};
/// Of keys; values follow head_dim later.
template <class P>
__device__ inline int slot_column(const WriteSlotArgs<P>& a, int c) {
    return c / a.head_dim * 2 * a.head_dim + c % a.head_dim;
}

template <class P>
struct write_slot_row {
    using T = typename P::activation;
    WriteSlotArgs<P> a;
    struct loaded {
        eight<T> k, v;
    };

    __device__ slot_place begin(const row_place& place) const {
        if (threadIdx.x % 32 == 0) {
            const long long position = static_cast<long long>(place.sequence) * a.sequence + a.ids[place.row];
            a.mask[position * a.slots + a.slot] = a.seen ? 1 : 0;
        }
        return {a, place};
    }
    template <bool whole>
    __device__ loaded load(const slot_place& at, const row_place&, int c, int n) const {
        return {load_eight<whole>(a.k + at.row + c, n), load_eight<whole>(a.v + at.row + c, n)};
    }
    template <bool whole>
    __device__ void store(const slot_place& at, const row_place&, int c, int, const loaded& x) const {
        T* const to = a.memory + at.slot + slot_column(a, c);
        *reinterpret_cast<eight<T>*>(to) = x.k;
        *reinterpret_cast<eight<T>*>(to + a.head_dim) = x.v;
    }
};

template <class P>
struct slot_gradient_row {
    using T = typename P::activation;
    SlotGradientArgs<P> g;
    struct loaded {
        eight<typename P::sum> k, v;
        eight<T> old_k, old_v;
    };

    __device__ slot_place begin(const row_place& place) const { return {g.forward, place}; }
    template <bool whole>
    __device__ loaded load(const slot_place& at, const row_place&, int c, int n) const {
        const auto* const from = g.slot_sum + at.slot + slot_column(g.forward, c);
        loaded x{load_eight<whole>(from, n), load_eight<whole>(from + g.forward.head_dim, n), {}, {}};
        if (g.adds)
            x.old_k = load_eight<whole>(g.grad_k + at.row + c, n),
            x.old_v = load_eight<whole>(g.grad_v + at.row + c, n);
        return x;
    }
    template <bool whole>
    __device__ void store(const slot_place& at, const row_place&, int c, int n, const loaded& x) const {
        float k[8], v[8];
#pragma unroll
        for (int i = 0; i < 8; ++i) {
            k[i] = (g.adds ? to_float(x.old_k.x[i]) : 0.f) + x.k.x[i];
            v[i] = (g.adds ? to_float(x.old_v.x[i]) : 0.f) + x.v.x[i];
        }
        store_eight<whole>(g.grad_k + at.row + c, k, n), store_eight<whole>(g.grad_v + at.row + c, v, n);
    }
};

template <class P>
void check_slot(const WriteSlotArgs<P>& a, const char* what) {
    if (a.head_dim % 8 != 0)
        throw error(std::string(what) + ": head_dim " + std::to_string(a.head_dim) + "; use a multiple of 8");
}

/// One thread a row; a block leaves H + 2 sums behind. fp32 has 1 - exp(x) of a log-sum-exp's difference to its own
/// rounding: expm1.
template <class P>
__global__ void __launch_bounds__(256) depth_mass_kernel(const DepthMassArgs<P> m, double* partial) {
    const auto& a = m.attention;
    const batch_rows all{a.batch, a.queries};
    const long long row = blockIdx.x * 256LL + threadIdx.x;
    bool counts = false;
    int slots = 0, keys = 0;
    if (row < all.capacity()) {
        const row_place place(all, row);
        counts = place.live(all);
        if (counts) {
            const long long first = all.first(place.sequence);
            const key_range see = visible_keys(place.index, a.queries.of(place.sequence), a.keys.of(place.sequence),
                                               a.causal, a.window, a.first == nullptr ? nullptr : a.first + first,
                                               a.last == nullptr ? nullptr : a.last + first);
            keys = see.last - see.first + 1;
            const std::uint8_t* const written =
                m.mask + (static_cast<long long>(place.sequence) * m.sequence + m.ids[row]) * m.slots;
            for (int part = 0; part < 2; ++part)
                for (int s = m.seen.begin[part]; s < m.seen.end[part]; ++s) slots += written[s] != 0 ? 1 : 0;
        }
    }
    for (int column = 0; column < a.heads + 2; ++column) {
        double x = 0;
        if (column == a.heads + 1)
            x = counts ? 1 : 0;
        else if (slots > 0 && column == a.heads)
            x = static_cast<double>(slots) / (slots + keys);
        else if (slots > 0)
            x = -static_cast<double>(expm1f(m.sequence_lse[row * a.heads + column] - a.lse[row * a.heads + column]));
        x = block_sum(x);
        if (threadIdx.x == 0) partial[static_cast<long long>(blockIdx.x) * (a.heads + 2) + column] = x;
    }
}
/// One block a column.
static __global__ void __launch_bounds__(256) depth_mass_end_kernel(const double* partial, int blocks, double* mass) {
    double x = 0;
    for (int b = static_cast<int>(threadIdx.x); b < blocks; b += 256) x += partial[b * gridDim.x + blockIdx.x];
    x = block_sum(x);
    if (threadIdx.x == 0) mass[blockIdx.x] += x;
}

template <class T>
__global__ void __launch_bounds__(256) no_keys_kernel(T* o, float* lse, long long rows, int head_dim) {
    const long long i = blockIdx.x * 256LL + threadIdx.x, row = i / (head_dim / 8);
    if (row >= rows) return;
    reinterpret_cast<uint4*>(o)[i] = uint4{};
    if (i % (head_dim / 8) == 0) lse[row] = -INFINITY;
}

}  // namespace detail

/// See WriteSlotArgs; head_dim a multiple of 8.
template <class P>
void write_slot(const WriteSlotArgs<P>& a, cudaStream_t stream) {
    detail::check_slot(a, "write_slot");
    each_row(a.rows, a.kv_heads * a.head_dim, detail::write_slot_row<P>{a}, "write_slot", stream);
}
/// See SlotGradientArgs; head_dim a multiple of 8.
template <class P>
void slot_gradient(const SlotGradientArgs<P>& g, cudaStream_t stream) {
    detail::check_slot(g.forward, "slot_gradient");
    each_row(g.forward.rows, g.forward.kv_heads * g.forward.head_dim, detail::slot_gradient_row<P>{g}, "slot_gradient",
             stream);
}

/// Bytes of scratch for depth_mass.
constexpr std::size_t depth_mass_scratch(long long rows, int heads) {
    return static_cast<std::size_t>((rows + 255) / 256 * (heads + 2)) * sizeof(double);
}
/// See DepthMassArgs. Sums in a fixed order.
template <class P>
void depth_mass(const DepthMassArgs<P>& m, void* scratch, cudaStream_t stream) {
    const long long rows = static_cast<long long>(m.attention.batch) * m.attention.queries.capacity;
    if (rows < 1) return;
    auto* const partial = static_cast<double*>(scratch);
    const unsigned blocks = detail::blocks_of(rows, 256), columns = static_cast<unsigned>(m.attention.heads + 2);
    detail::depth_mass_kernel<P><<<blocks, 256, 0, stream>>>(m, partial);
    detail::depth_mass_end_kernel<<<columns, 256, 0, stream>>>(partial, static_cast<int>(blocks), m.mass);
    check(cudaGetLastError(), "depth_mass");
}

/// Attention of which no row sees a key: o = 0, lse = -infinity.
template <class T>
void attention_to_nothing(const AttentionArgs<T>& a, cudaStream_t stream) {
    const long long rows = static_cast<long long>(a.batch) * a.queries.capacity * a.heads;
    const unsigned blocks = detail::blocks_of(rows * (a.head_dim / 8), 256);
    detail::no_keys_kernel<<<blocks, 256, 0, stream>>>(a.o, a.lse, rows, a.head_dim);
    check(cudaGetLastError(), "attention_forward");
}

}  // namespace sdepth::inline v0::on_cuda
