// SPDX-License-Identifier: MIT
// Turns CUDA status codes into sdepth::error. Rank 5.
#pragma once

#include <cuda_runtime.h>

#include <string>

#include "sdepth/error.hpp"

namespace sdepth::inline v0::on_cuda {

/// Throws sdepth::error if a CUDA call failed; `what` names the operation for the reader of the message.
inline void check(cudaError_t status, const char* what) {
    if (status != cudaSuccess)
        throw error(std::string(what) + ": CUDA says '" + cudaGetErrorString(status) +
                    "'; check the device, its free memory and the sizes given");
}

}  // namespace sdepth::inline v0::on_cuda
