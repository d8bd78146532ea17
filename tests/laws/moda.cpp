// SPDX-License-Identifier: MIT
// The laws for Mixture-of-Depths Attention over its policies.
#include "laws/moda_models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

TEST_CASE("depth attention keeps the laws: sources of slots") {
    keep_the_laws(slot_models{}, batches::packed);
    gradients_agree<MoDA, short_run>(false);
    decoding_equals_evaluation<MoDA, short_run, 1>();
    steps_repeat<MoDA, short_run>();
}

TEST_CASE("depth attention keeps the laws: bounded slots, separate softmaxes") {
    keep_the_laws(bounded_slot_models{}, batches::packed);
}
