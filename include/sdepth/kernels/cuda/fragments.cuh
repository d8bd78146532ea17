// SPDX-License-Identifier: MIT
// Small pieces of warp-wide matrix code: rounding to bf16, fast powers of two, moving and
// multiplying 8 x 8 pieces: ldmatrix, stmatrix, movmatrix, mma.sync (PTX ISA 9.7.14.5). Rank 5.
//
// Thread l of a warp holds of an 8 x 8 piece of 16-bit numbers row l / 4, columns 2 (l % 4) and the next.
#pragma once

#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include <cstdint>

#include "sdepth/kernels/cuda/mbarrier.cuh"

namespace sdepth::inline v0::on_cuda {

/// Two numbers rounded to bf16, the first in the low half.
__device__ inline std::uint32_t pack_bf16(float low, float high) {
    std::uint32_t r;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}

/// The same in fp16, and back.
__device__ inline std::uint32_t pack_half(float low, float high) {
    std::uint32_t r;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(high), "f"(low));
    return r;
}
__device__ inline float2 unpack_half(std::uint32_t x) { return __half22float2(*reinterpret_cast<const __half2*>(&x)); }

/// threadIdx.x and blockIdx.x, read anew: keeps the compiler from computing what rare code needs far ahead, in scarce
/// registers. `now` is any value that changes from use to use.
__device__ inline int this_thread() {
    int t;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(t));
    return t;
}

__device__ inline int this_block(int now) {
    int b;
    asm volatile("mov.u32 %0, %%ctaid.x;" : "=r"(b) : "r"(now));
    return b;
}

inline constexpr float log2e = 1.4426950408889634f, ln2 = .6931471805599453f;

/// 2^x to about two units in the last place; 0 for -infinity.
__device__ inline float exp2_fast(float x) {
    float r;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    return r;
}

/// Shared memory by address.
__device__ inline std::uint32_t load_shared(std::uint32_t from) {
    std::uint32_t x;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(x) : "r"(from) : "memory");
    return x;
}
__device__ inline void store_shared(std::uint32_t to, std::uint32_t x) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(x) : "memory");
}

/// Stores four 8 x 8 matrices of 16-bit elements; lane l gives the address of row l % 8 of matrix l / 8.
__device__ inline void store_matrices(void* row, const std::uint32_t (&m)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
                 "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3])
                 : "memory");
}
/// The same, each matrix transposed.
__device__ inline void store_matrices_transposed(void* row, const std::uint32_t (&m)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(shared_address(row)),
                 "r"(m[0]), "r"(m[1]), "r"(m[2]), "r"(m[3])
                 : "memory");
}

/// Copies 16 bytes into shared memory (cp.async, PTX ISA 9.7.9.25.3).
__device__ inline void copy_16(std::uint32_t to, const void* from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from) : "memory");
}
/// The same, or zeros where `there` is false.
__device__ inline void copy_16(std::uint32_t to, const void* from, bool there) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(there ? 16 : 0) : "memory");
}
/// Copies 4 bytes.
__device__ inline void copy_4(std::uint32_t to, const void* from) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(to), "l"(from) : "memory");
}
__device__ inline void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
/// Waits until at most `left` groups of this thread's copies are on their way.
template <int left>
__device__ inline void wait_copies() {
    asm volatile("cp.async.wait_group %0;" ::"n"(left) : "memory");
}

/// Loads four pieces, lane l giving the address of row l % 8 of piece l / 8.
__device__ inline void load_matrices(std::uint32_t (&m)[4], std::uint32_t row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(row)
                 : "memory");
}
__device__ inline void load_matrices(std::uint32_t (&m)[4], const void* row) { load_matrices(m, shared_address(row)); }
/// The same, each piece transposed.
__device__ inline void load_matrices_transposed(std::uint32_t (&m)[4], std::uint32_t row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(m[0]), "=r"(m[1]), "=r"(m[2]), "=r"(m[3])
                 : "r"(row)
                 : "memory");
}
__device__ inline void load_matrices_transposed(std::uint32_t (&m)[4], const void* row) {
    load_matrices_transposed(m, shared_address(row));
}
/// A piece transposed, in registers.
__device__ inline std::uint32_t transpose_matrix(std::uint32_t m) {
    std::uint32_t r;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(r) : "r"(m));
    return r;
}

/// d += A B. A is 16 x 16: pieces (top, left), (bottom, left), (top, right), (bottom, right); B is 16 x 8, pieces top
/// and bottom, each transposed (column l / 4, rows 2 (l % 4) and the next); d is 16 x 8: top row's two numbers,
/// bottom's.
__device__ inline void multiply_16x8x16(float (&d)[4], const std::uint32_t (&a)[4], std::uint32_t b_top,
                                        std::uint32_t b_bottom) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
        "{%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_top), "r"(b_bottom));
}
/// The same with A 16 x 8 and B 8 x 8.
__device__ inline void multiply_16x8x8(float (&d)[4], const std::uint32_t (&a)[2], std::uint32_t b) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
        : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
        : "r"(a[0]), "r"(a[1]), "r"(b));
}

}  // namespace sdepth::inline v0::on_cuda
