// SPDX-License-Identifier: MIT
#include "pipeline.hpp"

#include "sdepth/cuda.cuh"

namespace sdepth_test {

small_result run_on_cuda(small_model which, const small_run& what) {
    sdepth::cuda<> backend({.graphs = what.graphs});
    return run_small(which, backend, what);
}

}  // namespace sdepth_test
