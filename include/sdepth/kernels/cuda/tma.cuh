// SPDX-License-Identifier: MIT
// The copy engine: tensor maps (CUDA driver API, cuTensorMapEncodeTiled) and bulk copies (PTX ISA 9.7.9.25,
// "cp.async.bulk" and "cp.async.bulk.tensor"). Thin: one instruction a function. Rank 5.
#pragma once

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "sdepth/error.hpp"
#include "sdepth/kernels/cuda/error.cuh"
#include "sdepth/kernels/cuda/mbarrier.cuh"

namespace sdepth::inline v0::on_cuda {

namespace detail {

/// Map of a bf16 tensor with 128-byte swizzled boxes; sizes, box in elements, strides of all dimensions but the first
/// in bytes.
template <int n>
CUtensorMap box_map(const __nv_bfloat16* p, const cuuint64_t (&sizes)[n], const cuuint64_t (&strides)[n - 1],
                    const cuuint32_t (&box)[n]) {
    static const auto encode = [] {
        void* f = nullptr;
        cudaDriverEntryPointQueryResult found{};
        check(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &found),
              "tensor map");
        if (found != cudaDriverEntryPointSuccess) throw error("tensor map: the driver is too old; CUDA 12 is needed");
        return reinterpret_cast<decltype(&cuTensorMapEncodeTiled)>(f);
    }();
    cuuint32_t steps[n];
    for (cuuint32_t& s : steps) s = 1;
    CUtensorMap map;
    const CUresult r = encode(&map, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, n, const_cast<__nv_bfloat16*>(p), sizes, strides,
                              box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                              CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (r != CUDA_SUCCESS)
        throw error("tensor map: the driver refused it; align the tensor and its row stride to 16 bytes");
    return map;
}

}  // namespace detail

/// Map of a bf16 tensor [batch, rows, heads, dim], `row_stride` elements from row to row. One copy moves `box_rows`
/// rows of one head and lands as [dim / 64][box_rows][64] in shared memory, 128-byte swizzled (1024-byte aligned); rows
/// past the end are read as zero and never written. Coordinates: see load_tile.
inline CUtensorMap head_tile_map(const __nv_bfloat16* p, int batch, int rows, int heads, int dim, int row_stride,
                                 int box_rows) {
    const cuuint64_t row_bytes = cuuint64_t(row_stride) * sizeof(__nv_bfloat16);
    return detail::box_map<4>(p, {64, cuuint64_t(rows), cuuint64_t(heads) * unsigned(dim) / 64, cuuint64_t(batch)},
                              {row_bytes, 128, row_bytes * unsigned(rows)},
                              {64, cuuint32_t(box_rows), cuuint32_t(dim) / 64, 1});
}

/// Copies rows row .. row + box_rows - 1 of the head whose first 64 columns are chunk `chunk` (head * dim / 64), of
/// sequence b.
__device__ inline void load_tile(void* to, const CUtensorMap& map, mbarrier& full, int row, int chunk, int b) {
    asm volatile(
        "cp.async.bulk.tensor.4d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, "
        "%6}], "
        "[%2];" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(&full)), "r"(0), "r"(row), "r"(chunk), "r"(b)
        : "memory");
}

/// The same for a map of five dimensions.
__device__ inline void load_box_5d(void* to, const CUtensorMap& map, mbarrier& full, int c0, int c1, int c2, int c3,
                                   int c4) {
    asm volatile(
        "cp.async.bulk.tensor.5d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4, %5, %6, "
        "%7}], [%2];" ::"r"(shared_address(to)),
        "l"(&map), "r"(shared_address(&full)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
        : "memory");
}

/// The way back; the tile must have been written through fence_async_shared. Pairs with commit_stores.
__device__ inline void store_tile(const CUtensorMap& map, const void* from, int row, int chunk, int b) {
    asm volatile("cp.async.bulk.tensor.4d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5}], [%1];" ::"l"(&map),
                 "r"(shared_address(from)), "r"(0), "r"(row), "r"(chunk), "r"(b)
                 : "memory");
}

/// The same for a map of five dimensions.
__device__ inline void store_box_5d(const CUtensorMap& map, const void* from, int c0, int c1, int c2, int c3, int c4) {
    asm volatile(
        "cp.async.bulk.tensor.5d.global.shared::cta.tile.bulk_group [%0, {%2, %3, %4, %5, %6}], [%1];" ::"l"(&map),
        "r"(shared_address(from)), "r"(c0), "r"(c1), "r"(c2), "r"(c3), "r"(c4)
        : "memory");
}

/// Copies contiguous bytes (a multiple of 16) into shared memory.
__device__ inline void load_bytes(void* to, const void* from, int bytes, mbarrier& full) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
                     shared_address(to)),
                 "l"(from), "r"(bytes), "r"(shared_address(&full))
                 : "memory");
}

/// Stores contiguous fp32 numbers, or adds them to what is there.
__device__ inline void store_floats(float* to, const void* from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(shared_address(from)),
                 "r"(bytes)
                 : "memory");
}
__device__ inline void add_floats(float* to, const void* from, int bytes) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(to),
                 "r"(shared_address(from)), "r"(bytes)
                 : "memory");
}

__device__ inline void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

/// Waits until at most `left` groups of this thread's stores still read shared memory.
template <int left>
__device__ inline void wait_stores_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(left) : "memory");
}
/// Waits until at most `left` groups of this thread's stores are not complete in memory.
template <int left>
__device__ inline void wait_stores_done() {
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(left) : "memory");
}

__device__ inline void prefetch_map(const CUtensorMap& map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

}  // namespace sdepth::inline v0::on_cuda
