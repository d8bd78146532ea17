// SPDX-License-Identifier: MIT
// Rows on their way to a warp through shared memory: loads that take no registers, so that enough of them are in flight
// for the device's memory while a warp still works on an earlier row. Rank 5.
#pragma once

#include <cstddef>

#include "sdepth/kernels/cuda/fragments.cuh"
#include "sdepth/kernels/cuda/vector.cuh"

namespace sdepth::inline v0::on_cuda {

/// A warp's ring of `depth` stages; a stage has `pieces` times eight numbers of type T and `scalars` fp32 numbers for
/// each lane. A lane reads only what it asked for, so that no two threads ever wait for each other.
///
/// Use: `depth` times ask ... and `close`; then, in turn, `wait`, read the oldest stage, ask ... anew there, `close`.
template <class T, int pieces, int scalars, int depth>
class row_ring {
    static constexpr int parts = static_cast<int>(sizeof(eight<T>) / 16);  // copies of a piece
    struct stage_memory {
        uint4 pieces_of[pieces * parts][32];
        float scalars_of[scalars > 0 ? scalars : 1][32];
    };
    struct memory {
        stage_memory stages[depth];
    };

  public:
    static constexpr int stages = depth;
    /// Shared memory of a warp.
    static constexpr std::size_t bytes = sizeof(memory);

    /// @param shared  of the block, 16-byte aligned
    __device__ explicit row_ring(unsigned char* shared)
        : own_(reinterpret_cast<memory*>(shared) + threadIdx.x / 32), lane_(static_cast<int>(threadIdx.x % 32)) {}

    /// Asks for p[0 ... 7], or its first `n`, see load_eight.
    template <bool whole>
    __device__ void ask(int stage, int piece, const T* p, int n) {
        if constexpr (whole) {
#pragma unroll
            for (int i = 0; i < parts; ++i)
                copy_16(shared_address(at(stage, piece, i)), reinterpret_cast<const uint4*>(p) + i);
        } else {
            const eight<T> e = load_eight<false>(p, n);
#pragma unroll
            for (int i = 0; i < parts; ++i) *at(stage, piece, i) = reinterpret_cast<const uint4*>(&e)[i];
        }
    }
    /// Asks for one number.
    __device__ void ask(int stage, int scalar, const float* p) {
        copy_4(shared_address(&own_->stages[stage].scalars_of[scalar][lane_]), p);
    }
    /// What was asked for since the last call is a stage.
    __device__ void close() { commit_copies(); }
    /// The oldest stage is there.
    __device__ void wait() { wait_copies<depth - 1>(); }

    __device__ eight<T> piece(int stage, int piece) const {
        eight<T> e;
#pragma unroll
        for (int i = 0; i < parts; ++i) reinterpret_cast<uint4*>(&e)[i] = *at(stage, piece, i);
        return e;
    }
    __device__ float scalar(int stage, int scalar) const { return own_->stages[stage].scalars_of[scalar][lane_]; }

  private:
    __device__ uint4* at(int stage, int piece, int part) const {
        return &own_->stages[stage].pieces_of[piece * parts + part][lane_];
    }

    memory* own_;
    int lane_;
};

}  // namespace sdepth::inline v0::on_cuda
