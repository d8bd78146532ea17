// SPDX-License-Identifier: MIT
// The laws for expert layers with capacities, noise, and experts that choose: policies of training alone.
#include "laws/expert_models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

TEST_CASE("experts with a capacity keep the laws") { keep_the_laws(capacity_models{}); }

TEST_CASE("experts with noise, and experts that choose, keep the laws") { keep_the_laws(training_models{}); }
