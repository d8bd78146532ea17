// SPDX-License-Identifier: MIT
// The second door: sdepth.hpp, the CUDA backend, and the pipeline that runs on it. Rank 8.
#pragma once

#include "sdepth/kernels/cuda/cuda.cuh"
#include "sdepth/pipeline.hpp"
#include "sdepth/sdepth.hpp"
