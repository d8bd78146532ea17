// SPDX-License-Identifier: MIT
// The laws for dense layers over their policies.
#include "laws/models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

TEST_CASE("dense layers keep the laws") { keep_the_laws(dense_models{}); }

TEST_CASE("dense: steps repeat bit for bit") { steps_repeat<Qwen, short_run>(); }
