// SPDX-License-Identifier: MIT
// Blocks of one cluster: rank, barrier, each other's shared memory (PTX ISA 9.7.13.4
// "barrier.cluster", 9.7.9.22 "mapa", 9.7.9.8 "ld.shared::cluster", 9.7.9.11 "st.shared::cluster"). Code for sm_90a
// only. Rank 5.
#pragma once

#include <cuda_runtime.h>

#include "sdepth/kernels/cuda/mbarrier.cuh"

namespace sdepth::inline v0::on_cuda {

__device__ inline int cluster_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return static_cast<int>(rank);
}

/// The two halves of cluster_sync, without memory: between them, and after, every block of the cluster runs.
__device__ inline void cluster_arrive() { asm volatile("barrier.cluster.arrive.relaxed.aligned;" ::: "memory"); }
__device__ inline void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }

/// Waits for every thread of the cluster; what they wrote to shared memory before is seen after.
__device__ inline void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

/// The number that stands at the place of `here` in the shared memory of block `rank`.
__device__ inline unsigned cluster_load(const unsigned* here, int rank) {
    unsigned address, value;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(here)), "r"(rank));
    asm volatile("ld.shared::cluster.u32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}

/// Stores `value` there; seen after the next cluster_sync.
__device__ inline void cluster_store(unsigned* here, int rank, unsigned value) {
    unsigned address;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(shared_address(here)), "r"(rank));
    asm volatile("st.shared::cluster.u32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

}  // namespace sdepth::inline v0::on_cuda
