// SPDX-License-Identifier: MIT
// The laws for depth slots under sparse depth, where tokens that skip a layer write no slot: any scope and keys, packed
// documents, expert layers.
#include "laws/moda_models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

TEST_CASE("sparse depth attention keeps the laws") {
    keep_the_laws(sparse_slot_models{}, batches::packed);
    gradients_agree<MoDASparse, short_run>(false);
    decoding_equals_evaluation<MoDASparse, short_run, 1>();
    steps_repeat<MoDASparse, short_run>();
}
