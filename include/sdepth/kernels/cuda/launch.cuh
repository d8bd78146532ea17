// SPDX-License-Identifier: MIT
// Kernels that start while the one before them ends: programmatic dependent launch (CUDA C++ Programming Guide 3.1,
// PTX ISA 9.7.12.12 "griddepcontrol"). A step starts thousands of kernels of a few microseconds, and a plain start
// costs about two. Rank 5.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

#include "sdepth/config.hpp"
#include "sdepth/kernels/cuda/architecture.cuh"
#include "sdepth/kernels/cuda/error.cuh"

namespace sdepth::inline v0::on_cuda {

/// Once all blocks of a kernel have come here, those of a next one that `launch_early` starts take their places as they
/// become free.
__device__ inline void let_next_kernel_start() {
    if constexpr (SDEPTH_HOPPER_CODE) asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
}
/// First line of a kernel that `launch_early` starts: what follows sees everything that the kernels before it wrote.
/// The next kernel's blocks may take their places meanwhile, and wait in turn. A kernel may do before it what needs
/// nothing of the kernel just before, nor of those before that one if it started early itself.
__device__ inline void wait_for_kernel_before() {
    let_next_kernel_start();
    if constexpr (SDEPTH_HOPPER_CODE) asm volatile("griddepcontrol.wait;" ::: "memory");
}

namespace detail {

/// Only kernels that wait_for_kernel_before may start early: those compiled for Hopper.
inline bool starts_early() {
    static const bool waits = look_for_hopper("launch").found();
    return waits;
}

}  // namespace detail

/// The kernel, which may then take so many bytes of shared memory.
template <class Kernel>
Kernel with_shared(Kernel kernel, std::size_t bytes, const char* what) {
    check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(bytes)), what);
    return kernel;
}

/// kernel<<<grid, block, shared, stream>>>(arguments...) where the device can, before its time; elsewhere in its time.
template <class... P, class... A>
void launch_early(void (*kernel)(P...), dim3 grid, dim3 block, std::size_t shared, cudaStream_t stream,
                  const char* what, const A&... arguments) {
    cudaLaunchAttribute early{};
    early.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    early.val.programmaticStreamSerializationAllowed = 1;
    cudaLaunchConfig_t config{};
    config.gridDim = grid;
    config.blockDim = block;
    config.dynamicSmemBytes = shared;
    config.stream = stream;
    config.attrs = &early;
    config.numAttrs = detail::starts_early() ? 1 : 0;
    check(cudaLaunchKernelEx(&config, kernel, arguments...), what);
}

}  // namespace sdepth::inline v0::on_cuda
