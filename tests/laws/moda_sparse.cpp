// SPDX-License-Identifier: MIT
// The laws for depth slots under sparse depth, where tokens that skip a layer write no slot: any scope and keys, packed
// documents, expert layers.
#include "laws/moda_models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

namespace {

template <class M>
void keeps_the_laws() {
    gradients_agree<M, short_run>(true);
    prefix_is_independent<M, short_run>();
    decoding_equals_evaluation<M, short_run>();
}

}  // namespace

TEST_CASE("sparse depth attention keeps the laws") {
    keeps_the_laws<MoDASparse>();
    keeps_the_laws<MoDAMod>();
    keeps_the_laws<MoDAFullKeys>();
    keeps_the_laws<MoDAByDocument>();
    keeps_the_laws<MoDASparseBounded>();
    keeps_the_laws<MoDAWindowed>();
    keeps_the_laws<MoDARoutedFfn>();
    documents_are_apart<MoDAByDocument, short_run>();
    gradients_agree<MoDASparse, short_run>(false);
    decoding_equals_evaluation<MoDASparse, short_run, 1>();
    steps_repeat<MoDASparse, short_run>();
}

TEST_CASE("sparse depth attention with experts keeps the laws") { keeps_the_laws<MoDAExperts>(); }
