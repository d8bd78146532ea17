// SPDX-License-Identifier: MIT
// The laws for linear attention and the gated delta rule over their policies, alone and with sparse depth around them.
#include "laws/pipeline_laws.hpp"
#include "laws/recurrent_models.hpp"

using namespace laws;

TEST_CASE("linear attention keeps the laws") {
    keep_the_laws(linear_models{});
    decode_one_by_one(linear_models{});
    steps_repeat<LinearPlain, short_run>();
}

TEST_CASE("the gated delta rule keeps the laws") {
    keep_the_laws(delta_models{});
    decode_one_by_one(delta_models{});
    steps_repeat<DeltaPlain, short_run>();
}
