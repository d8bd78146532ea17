// SPDX-License-Identifier: MIT
// Barriers between warps: mbarrier (PTX ISA 9.7.13.15, "mbarrier") and named barriers (9.7.13.1, "bar"), and the
// registers that a warpgroup holds (9.7.19.5, "setmaxnreg"). Thin: one instruction a function. Rank 5.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace sdepth::inline v0::on_cuda {

/// Address of shared memory as PTX wants it.
__device__ inline std::uint32_t shared_address(const void* p) {
    return static_cast<std::uint32_t>(__cvta_generic_to_shared(p));
}

/// A barrier in shared memory whose phases alternate; waiters name the parity of the phase they wait for.
struct mbarrier {
    std::uint64_t state;

    __device__ void init(int arrivals) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(this)), "r"(arrivals));
    }
    __device__ void arrive() {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(this)) : "memory");
    }
    /// Arrives and announces `bytes` that the copy engine will deliver in this phase.
    __device__ void arrive_expect(int bytes) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(this)), "r"(bytes)
                     : "memory");
    }
    /// Returns once the phase of this parity is over.
    __device__ void wait(std::uint32_t parity) {
        asm volatile(
            "{\n"
            ".reg .pred done;\n"
            "again:\n"
            "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
            "@!done bra again;\n"
            "}" ::"r"(shared_address(this)),
            "r"(parity)
            : "memory");
    }
    /// The same with sm_80 instructions: asks again at once.
    __device__ void wait_portable(std::uint32_t parity) {
        asm volatile(
            "{\n"
            ".reg .pred done;\n"
            "again:\n"
            "mbarrier.test_wait.parity.shared::cta.b64 done, [%0], %1;\n"
            "@!done bra again;\n"
            "}" ::"r"(shared_address(this)),
            "r"(parity)
            : "memory");
    }
};

/// Makes freshly initialised barriers visible to the copy engine.
__device__ inline void fence_barrier_init() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

/// Orders this thread's stores to shared memory before later reads by the tensor cores and the copy engine.
__device__ inline void fence_async_shared() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

/// Named barrier `id` (1 to 15; 0 is __syncthreads) among `threads` threads.
__device__ inline void named_sync(int id, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}
__device__ inline void named_arrive(int id, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

template <int registers>
__device__ inline void give_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(registers));
}
template <int registers>
__device__ inline void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(registers));
}
/// Either, from `held` on.
template <int registers, int held>
__device__ inline void take_registers_or_give() {
    if constexpr (registers > held)
        take_registers<registers>();
    else
        give_registers<registers>();
}

}  // namespace sdepth::inline v0::on_cuda
