// SPDX-License-Identifier: MIT
// The laws for S4 over its policies, alone and with sparse depth around it.
#include "laws/pipeline_laws.hpp"
#include "laws/recurrent_models.hpp"

using namespace laws;

TEST_CASE("s4 keeps the laws") {
    keep_the_laws(s4_models{});
    decode_one_by_one(s4_models{});
    steps_repeat<S4Plain, short_run>();
}
