// SPDX-License-Identifier: MIT
// Eight neighbouring numbers at a time: 16 bytes of bfloat16 a load. Kernels that are bound by memory keep them as they
// were stored until they are used, so that many loads are in flight in few registers. Rank 5.
#pragma once

#include <cuda_bf16.h>
#include <cuda_runtime.h>

#include "sdepth/config.hpp"

namespace sdepth::inline v0::on_cuda {

template <class T>
struct alignas(16) eight {
    T x[8];
};

__device__ inline float to_float(float x) { return x; }
__device__ inline float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }

/// x rounded to nearest.
template <class T>
__device__ inline T from_float(float x) {
    if constexpr (sizeof(T) == 4)
        return x;
    else
        return __float2bfloat16_rn(x);
}

/// The numbers p[0 ... 7]. `whole`: all exist and p is a multiple of 16 bytes; else only the first `n`, the rest is 0.
template <bool whole, class T>
__device__ __forceinline__ eight<T> load_eight(const T* p, int n) {
    eight<T> e;
    if constexpr (whole) {
#pragma unroll
        for (int i = 0; i < static_cast<int>(sizeof(e) / 16); ++i)
            reinterpret_cast<uint4*>(&e)[i] = reinterpret_cast<const uint4*>(p)[i];
    } else {
#pragma unroll
        for (int i = 0; i < 8; ++i) e.x[i] = i < n ? p[i] : from_float<T>(0.f);
    }
    return e;
}

/// Stores y at p[0 ... 7], or its first `n`.
template <bool whole, class T>
__device__ __forceinline__ void store_eight(T* p, const float (&y)[8], int n) {
    if constexpr (whole) {
        eight<T> e;
#pragma unroll
        for (int i = 0; i < 8; ++i) e.x[i] = from_float<T>(y[i]);
#pragma unroll
        for (int i = 0; i < static_cast<int>(sizeof(e) / 16); ++i)
            reinterpret_cast<uint4*>(p)[i] = reinterpret_cast<const uint4*>(&e)[i];
    } else {
#pragma unroll
        for (int i = 0; i < 8; ++i)
            if (i < n) p[i] = from_float<T>(y[i]);
    }
}

/// Sum over the lanes of a warp, the same in every lane.
__device__ inline float warp_sum(float x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}
__device__ inline double warp_sum(double x) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) x += __shfl_xor_sync(~0u, x, step);
    return x;
}

__device__ inline float sigmoid(float x) { return 1.f / (1.f + __expf(-x)); }

}  // namespace sdepth::inline v0::on_cuda
