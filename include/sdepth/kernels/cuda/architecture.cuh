// SPDX-License-Identifier: MIT
// Architectures that kernels are written for, and whether this program can run those for Hopper here. Rank 5.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "sdepth/config.hpp"
#include "sdepth/error.hpp"
#include "sdepth/kernels/cuda/error.cuh"

namespace sdepth::inline v0::on_cuda {

struct hopper {};    ///< sm_90a: fast
struct portable {};  ///< any from sm_80 on

namespace detail {

// Never runs: its bound says what device code was compiled for. Kernels for Hopper are a trap elsewhere.
template <class = void>
__global__ void __launch_bounds__(SDEPTH_HOPPER_CODE ? 64 : 32) target_kernel() {}

inline void look_for_hopper(const char* what) {
    constexpr const char* mend = "; compile for sm_90a (-arch=sm_90a, not sm_90), or use cuda<on_cuda::portable>";
    int device = 0, major = 0, minor = 0;
    check(cudaGetDevice(&device), what);
    check(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, device), what);
    check(cudaDeviceGetAttribute(&minor, cudaDevAttrComputeCapabilityMinor, device), what);
    if (major != 9 || minor != 0)
        throw error(std::string(what) + ": this kernel is for Hopper (compute capability 9.0), the device has " +
                    std::to_string(major) + "." + std::to_string(minor) + "; use cuda<on_cuda::portable>");
    cudaFuncAttributes compiled{};
    if (cudaFuncGetAttributes(&compiled, target_kernel<>) != cudaSuccess || compiled.maxThreadsPerBlock != 64) {
        cudaGetLastError();  // the next call is not to see it
        throw error(std::string(what) + ": this program has no code for Hopper" + mend);
    }
}

}  // namespace detail

/// Throws sdepth::error where kernels for Hopper cannot run: another device, or device code of another target. Looks
/// once: the devices of one program are taken to be of one kind.
inline void require_hopper(const char* what) {
    [[maybe_unused]] static const bool found = (detail::look_for_hopper(what), true);
}

}  // namespace sdepth::inline v0::on_cuda
