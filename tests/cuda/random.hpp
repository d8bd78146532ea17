// SPDX-License-Identifier: MIT
// Launches of random.cu: numbers made on the GPU, for random.cpp to compare.
#pragma once

#include <cstdint>
#include <vector>

/// Normal numbers of the elements 0 ... count - 1 (tests' use, stream 3).
std::vector<double> gpu_normals(std::uint64_t seed, std::uint64_t count);

/// Bits of CUDA's bfloat16 for each float, converted on the GPU.
std::vector<std::uint16_t> gpu_bfloat16(const std::vector<float>& values);
