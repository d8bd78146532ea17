// SPDX-License-Identifier: MIT
// Needs far more registers than its launch bounds leave, so ptxas spills. The build must refuse it.

__global__ void __launch_bounds__(1024, 2) spilling_kernel(float* data) {
    float value[64];
#pragma unroll
    for (int i = 0; i < 64; ++i) value[i] = data[i * 1024 + threadIdx.x];
    __syncthreads();
#pragma unroll
    for (int i = 0; i < 64; ++i) value[i] += value[(i * 7 + 1) % 64] * value[(i * 13 + 5) % 64];
#pragma unroll
    for (int i = 0; i < 64; ++i) data[i * 1024 + threadIdx.x] = value[i];
}
