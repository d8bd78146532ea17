// SPDX-License-Identifier: MIT
// The laws for Mixture-of-Depths Attention over its policies.
#include "laws/moda_models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

namespace {

template <class M>
void keeps_the_laws() {
    gradients_agree<M, short_run>(true);
    prefix_is_independent<M, short_run>();
    decoding_equals_evaluation<M, short_run>();
    documents_are_apart<M, short_run>();
}

}  // namespace

TEST_CASE("depth attention keeps the laws: sources of slots") {
    keeps_the_laws<MoDA>();
    keeps_the_laws<MoDAReused>();
    keeps_the_laws<MoDAProjected>();
    keeps_the_laws<MoDAUnnormed>();
    keeps_the_laws<MoDAPlain>();
    keeps_the_laws<MoDAParts>();
    keeps_the_laws<MoDALooped>();
    gradients_agree<MoDA, short_run>(false);
    decoding_equals_evaluation<MoDA, short_run, 1>();
    steps_repeat<MoDA, short_run>();
}

TEST_CASE("depth attention keeps the laws: bounded slots") {
    keeps_the_laws<MoDALastOne>();
    keeps_the_laws<MoDALastThree>();
    keeps_the_laws<MoDAFirstThree>();
    keeps_the_laws<MoDAMixed>();
}

TEST_CASE("depth attention keeps the laws: separate softmaxes") {
    keeps_the_laws<MoDASeparate>();
    keeps_the_laws<MoDAMixedApart>();
}
