// SPDX-License-Identifier: MIT
// Short runs for the sanitizers, apart so that they can run side by side. The evaluation is not recorded: the tools do
// not follow nodes that the device chooses.
#include <cmath>

#include "pipeline.hpp"
#include "support/catch.hpp"

namespace {

using namespace sdepth_test;

void check_finite(const small_run& what, small_model which = small_model::x_mod) {
    const small_result got = run_on_cuda(which, what);
    REQUIRE(got.losses.size() == static_cast<std::size_t>(what.steps));
    for (const double loss : got.losses) CHECK(std::abs(loss - std::log(203)) < .5);
    if (what.evaluations > 0) CHECK((std::isfinite(got.top) && std::isfinite(got.threshold)));
}

}  // namespace

TEST_CASE("sanitizers: a step", "[pipeline][small]") { check_finite({.steps = 1, .evaluations = 0, .marked = true}); }
TEST_CASE("sanitizers: a recorded step", "[pipeline][small]") {
    check_finite({.steps = 2, .evaluations = 0, .marked = true});  // the second is recorded and replayed
}
TEST_CASE("sanitizers: evaluation", "[pipeline][small]") {
    check_finite({.steps = 0, .evaluations = 1, .marked = true});
}
TEST_CASE("sanitizers: a step with documents and padding", "[pipeline][small]") {
    check_finite({.steps = 1, .documents = true, .evaluations = 0, .marked = true});
}
TEST_CASE("sanitizers: a step of depth attention", "[pipeline][small]") {
    check_finite({.steps = 1, .evaluations = 0, .marked = true}, small_model::moda);
}
TEST_CASE("sanitizers: evaluation of depth attention", "[pipeline][small]") {
    check_finite({.steps = 0, .evaluations = 1, .marked = true}, small_model::moda);
}
