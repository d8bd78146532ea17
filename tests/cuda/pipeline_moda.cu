// SPDX-License-Identifier: MIT
#include "pipeline_on_cuda.cuh"

namespace sdepth_test {

template small_result run_model_on_cuda<small::MoDA>(const small_run&);

}  // namespace sdepth_test
