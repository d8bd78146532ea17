// SPDX-License-Identifier: MIT
// Catch2's implementation (version 2 has it in the header), compiled once for all tests.
#define CATCH_CONFIG_RUNNER
#include "support/catch_run.hpp"

#include "support/catch.hpp"

namespace sdepth_test {

int run_catch(int argc, char** argv) { return Catch::Session().run(argc, argv) == 0 ? 0 : 1; }

}  // namespace sdepth_test
