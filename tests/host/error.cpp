// SPDX-License-Identifier: MIT
// The exception type keeps its text and its prefix.
#include "sdepth/error.hpp"

#include <string>

#include "support/catch.hpp"

TEST_CASE("an error says whose it is and what is wrong") {
    CHECK_THROWS_AS(throw sdepth::error("x"), std::runtime_error);
    CHECK(std::string(sdepth::error("no such file a.bin").what()) == "sdepth: no such file a.bin");
    CHECK(std::string(sdepth::error("sdepth: f: no such x").what()) == "sdepth: f: no such x");
}
