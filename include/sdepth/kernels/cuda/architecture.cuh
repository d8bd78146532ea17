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

/// Whether the device is a Hopper and this program has code for it.
struct hopper_search {
    int major = 0, minor = 0;
    bool code = false;

    bool device() const { return major == 9 && minor == 0; }
    bool found() const { return device() && code; }
};
inline hopper_search look_for_hopper(const char* what) {
    hopper_search x;
    int id = 0;
    check(cudaGetDevice(&id), what);
    check(cudaDeviceGetAttribute(&x.major, cudaDevAttrComputeCapabilityMajor, id), what);
    check(cudaDeviceGetAttribute(&x.minor, cudaDevAttrComputeCapabilityMinor, id), what);
    cudaFuncAttributes compiled{};
    x.code = cudaFuncGetAttributes(&compiled, target_kernel<>) == cudaSuccess && compiled.maxThreadsPerBlock == 64;
    cudaGetLastError();  // the next call is not to see it
    return x;
}

}  // namespace detail

/// Throws sdepth::error where kernels for Hopper cannot run: another device, or device code of another target. Looks
/// once: the devices of one program are taken to be of one kind.
inline void require_hopper(const char* what) {
    static const detail::hopper_search x = detail::look_for_hopper(what);
    if (x.found()) return;
    const std::string device = std::to_string(x.major) + "." + std::to_string(x.minor);
    throw error(std::string(what) +
                (x.device()
                     ? ": this program has no code for Hopper; compile for sm_90a (-arch=sm_90a, not sm_90), or use "
                     : ": this kernel is for Hopper (compute capability 9.0), the device has " + device + "; use ") +
                "cuda<on_cuda::portable>");
}

}  // namespace sdepth::inline v0::on_cuda
