// SPDX-License-Identifier: MIT
// A program that uses the CUDA backend's target; it starts without a GPU too.
#include <cublasLt.h>

#include <cstdio>

#include "sdepth/version.hpp"

__global__ void kernel(int* out) { *out = SDEPTH_VERSION; }

int main() {
    static_assert(__cplusplus >= 202002L);
    std::printf("sdepth %s, cuBLASLt %zu\n", SDEPTH_VERSION_STRING, cublasLtGetVersion());
}
