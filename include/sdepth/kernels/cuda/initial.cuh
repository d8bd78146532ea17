// SPDX-License-Identifier: MIT
// First values of tensors, the bits of the host where they are drawn by random.hpp alone. Rank 5.
#pragma once

#include <algorithm>

#include "sdepth/kernels/cuda/each_row.cuh"
#include "sdepth/ops/initial.hpp"

namespace sdepth::inline v0::on_cuda {

namespace detail {

template <class P>
__global__ void __launch_bounds__(256) initial_kernel(const InitialArgs<P> a) {
    for (long long i = blockIdx.x * 256LL + threadIdx.x; i < a.elements; i += gridDim.x * 256LL) {
        const auto value = static_cast<typename P::master>(initial_value(a.start, a.seed, a.stream, i, a.cols));
        a.master[i] = value;
        if (a.weight != nullptr) a.weight[i] = from_float<typename P::weight>(value);
    }
}

}  // namespace detail

/// See InitialArgs.
template <class P>
void initialise(const InitialArgs<P>& a, cudaStream_t stream) {
    if (a.elements < 1) return;
    const unsigned blocks = static_cast<unsigned>(std::min(65536LL, (a.elements + 255) / 256));
    detail::initial_kernel<P><<<blocks, 256, 0, stream>>>(a);
    check(cudaGetLastError(), "initialise");
}

}  // namespace sdepth::inline v0::on_cuda
