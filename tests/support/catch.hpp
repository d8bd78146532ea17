// SPDX-License-Identifier: MIT
// The only file that includes Catch2; hides the difference between versions 2 and 3.
// Not for .cu files: Catch2 costs nvcc seconds, so launches live in a .cu and assertions in a .cpp.
#pragma once

#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_all.hpp>
using Catch::Approx;
#else
#include <catch2/catch.hpp>
#endif
