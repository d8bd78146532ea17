// SPDX-License-Identifier: MIT
// A program that uses the library without CUDA.
#include <cstdio>

#include "sdepth/version.hpp"

int main() { std::puts("sdepth " SDEPTH_VERSION_STRING); }
