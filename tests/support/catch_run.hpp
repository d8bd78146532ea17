// SPDX-License-Identifier: MIT
// Declares the function that both mains call. No Catch2 here.
#pragma once

namespace sdepth_test {

/// Runs Catch2 and returns 0 if all passed, else 1. Catch2 v2 itself returns the number of failures, so four failed
/// assertions would look like ctest's "skipped".
int run_catch(int argc, char** argv);

}  // namespace sdepth_test
