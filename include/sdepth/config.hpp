// SPDX-License-Identifier: MIT
// Every macro of the library: its version, the language check, what depends on the compiler or CUDA. Nothing else
// defines one or tests a compiler. Rank 0.
#pragma once

// The version, for the preprocessor; version.hpp has it as a constant. Its only source: CMake reads these three
// numbers.
#define SDEPTH_VERSION_MAJOR 0
#define SDEPTH_VERSION_MINOR 1
#define SDEPTH_VERSION_PATCH 0
#define SDEPTH_VERSION (SDEPTH_VERSION_MAJOR * 10000 + SDEPTH_VERSION_MINOR * 100 + SDEPTH_VERSION_PATCH)
#define SDEPTH_VERSION_STRING "0.1.0"

#if !defined(__cplusplus) || (__cplusplus < 202002L && !(defined(_MSVC_LANG) && _MSVC_LANG >= 202002L))
#error "sdepth: needs C++20; add -std=c++20"
#endif

// Marks small functions that both the host and the GPU call; empty for a plain C++ compiler.
#if defined(__CUDACC__)
#define SDEPTH_HOST_DEVICE __host__ __device__
#else
#define SDEPTH_HOST_DEVICE
#endif

// 1 where host<float> multiplies matrices with OpenBLAS's CBLAS; the CMake targets set it where they find one.
#if !defined(SDEPTH_CBLAS)
#define SDEPTH_CBLAS 0
#endif

// 1 where device code is compiled for sm_90a, whose instructions other targets refuse; kernels for Hopper are a trap
// elsewhere, so that a program for several architectures compiles.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define SDEPTH_HOPPER_CODE 1
#else
#define SDEPTH_HOPPER_CODE 0
#endif
