// SPDX-License-Identifier: MIT
// The laws for sparse depth over where its layers stand.
#include "laws/models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

TEST_CASE("sparse layers keep the laws wherever they stand") { keep_the_laws(place_models{}); }
