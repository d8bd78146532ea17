// SPDX-License-Identifier: MIT
// The laws for expert layers that rows choose from.
#include "laws/expert_models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

TEST_CASE("experts keep the laws") { keep_the_laws(expert_models{}); }

TEST_CASE("experts: steps repeat bit for bit") {
    steps_repeat<Steered, short_run>();
    steps_repeat<SparseExperts, short_run>();
}

TEST_CASE("experts: evaluations leave the step alone") { evaluations_leave_the_step<Steered, short_run>(); }
