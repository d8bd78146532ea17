// SPDX-License-Identifier: MIT
// Products of rows with a weight matrix, by cuBLASLt: bfloat16 in, sums in fp32, gradients of weights added in fp32.
// Products run over all rows of memory, for the host does not know how many are live; dead rows become zero where a sum
// runs over rows. Rank 5.
#pragma once

#include <cstddef>

#include "sdepth/kernels/cuda/norm.cuh"
#include "sdepth/kernels/cuda/products.cuh"
#include "sdepth/kernels/cuda/reduce.cuh"
#include "sdepth/ops/linear.hpp"

namespace sdepth::inline v0::on_cuda {

namespace detail {

// y += bias, eight columns at a time.
template <class P>
struct add_bias {
    typename P::activation* y;
    const typename P::master* bias;
    int width;

    struct nothing {};
    __device__ nothing begin(const row_place&) const { return {}; }
    template <bool whole>
    __device__ auto load(nothing, const row_place& place, int c, int n) const {
        return load_eight<whole>(y + place.row * width + c, n);
    }
    template <bool whole, class Loaded>
    __device__ void store(nothing, const row_place& place, int c, int n, const Loaded& loaded) const {
        float sum[8];
#pragma unroll
        for (int e = 0; e < 8; ++e) sum[e] = to_float(loaded.x[e]) + (e < n ? to_float(bias[c + e]) : 0.f);
        store_eight<whole>(y + place.row * width + c, sum, n);
    }
};

// Sums of columns over the rows block, block + blocks, ...; 32 columns a block of threads, eight rows at a time.
template <class T>
__global__ void __launch_bounds__(256)
    column_sums_kernel(const batch_rows rows, int columns, const T* x, float* partial) {
    const int c = static_cast<int>(blockIdx.x * 32 + threadIdx.x % 32), lane = static_cast<int>(threadIdx.x / 32);
    __shared__ float sums[8][32];
    float sum = 0;
    for (long long row = blockIdx.y * 8LL + lane; row < rows.capacity(); row += gridDim.y * 8LL)
        if (c < columns && row_place(rows, row).live(rows)) sum += to_float(x[row * columns + c]);
    sums[lane][threadIdx.x % 32] = sum;
    __syncthreads();
    if (lane > 0 || c >= columns) return;
    for (int l = 1; l < 8; ++l) sum += sums[l][threadIdx.x];
    partial[static_cast<long long>(blockIdx.y) * columns + c] = sum;
}

}  // namespace detail

/// See LinearArgs.
template <class P>
void linear(const LinearArgs<P>& a, products& multiply, cudaStream_t stream) {
    detail::check_rows(a.rows, a.outputs, "linear");
    multiply({.m = static_cast<int>(a.rows.capacity()),
              .n = a.outputs,
              .k = a.inputs,
              .b_transposed = true,
              .a = a.x,
              .b = a.weight,
              .a_stride = a.inputs,
              .b_stride = a.inputs,
              .c_stride = a.outputs},
             a.y, stream);
    if (a.bias != nullptr) each_row(a.rows, a.outputs, detail::add_bias<P>{a.y, a.bias, a.outputs}, "linear", stream);
}

constexpr std::size_t linear_backward_scratch(int outputs) { return column_sums_scratch(outputs); }

/// First: dead rows of grad_y and x become zero, for products sum over all rows.
template <class P>
void linear_backward_clear(const LinearBackwardArgs<P>& g, cudaStream_t stream) {
    using activation = typename P::activation;
    clear_dead_rows(g.forward.rows, g.forward.outputs, const_cast<activation*>(g.grad_y), stream);
    clear_dead_rows(g.forward.rows, g.forward.inputs, const_cast<activation*>(g.forward.x), stream);
}

/// Then grad_x and grad_bias of LinearBackwardArgs; grad_x is zero in dead rows.
template <class P>
void linear_backward_rows(const LinearBackwardArgs<P>& g, products& multiply, block_sums sums, cudaStream_t stream) {
    const LinearArgs<P>& a = g.forward;
    const int rows = static_cast<int>(a.rows.capacity());
    if (g.grad_x != nullptr)
        multiply({.m = rows,
                  .n = a.inputs,
                  .k = a.outputs,
                  .a = g.grad_y,
                  .b = a.weight,
                  .a_stride = a.outputs,
                  .b_stride = a.inputs,
                  .c_stride = a.inputs,
                  .beta = g.adds_to_grad_x ? 1.f : 0.f},
                 g.grad_x, stream);
    if (g.grad_bias == nullptr) return;
    auto* partial = sums.room<float>(linear_backward_scratch(a.outputs), stream);
    const dim3 grid(detail::blocks_of(a.outputs, 32), column_sum_blocks);
    detail::column_sums_kernel<<<grid, 256, 0, stream>>>(a.rows, a.outputs, g.grad_y, partial);
    check(cudaGetLastError(), "linear_backward");
    sums.add_columns(partial, column_sum_blocks, a.outputs, g.grad_bias, "linear_backward", stream);
}

/// And grad_weight of LinearBackwardArgs.
template <class P>
void linear_backward_weight(const LinearBackwardArgs<P>& g, products& multiply, cudaStream_t stream) {
    const LinearArgs<P>& a = g.forward;
    multiply({.m = a.outputs,
              .n = a.inputs,
              .k = static_cast<int>(a.rows.capacity()),
              .a_transposed = true,
              .a = g.grad_y,
              .b = a.x,
              .a_stride = a.outputs,
              .b_stride = a.inputs,
              .c_stride = a.inputs,
              .beta = g.adds_to_grad_weight ? 1.f : 0.f},
             g.grad_weight, stream);
}

}  // namespace sdepth::inline v0::on_cuda
