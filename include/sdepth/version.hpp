// SPDX-License-Identifier: MIT
// The library's version, its only source: CMake reads these three numbers. Rank 0.
#pragma once

#define SDEPTH_VERSION_MAJOR 0
#define SDEPTH_VERSION_MINOR 1
#define SDEPTH_VERSION_PATCH 0
#define SDEPTH_VERSION (SDEPTH_VERSION_MAJOR * 10000 + SDEPTH_VERSION_MINOR * 100 + SDEPTH_VERSION_PATCH)
#define SDEPTH_VERSION_STRING "0.1.0"
