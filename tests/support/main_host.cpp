// SPDX-License-Identifier: MIT
// Entry point of tests that need no GPU.
#include "support/catch_run.hpp"

int main(int argc, char** argv) { return sdepth_test::run_catch(argc, argv); }
