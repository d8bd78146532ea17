// SPDX-License-Identifier: MIT
// The laws for expert layers that rows choose from.
#include "laws/expert_models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

TEST_CASE("experts: gradients agree with differences") {
    for (const bool packed : {false, true}) {
        gradients_agree<Mixtral, short_run>(packed);
        gradients_agree<ScoreFirst, short_run>(packed);
        gradients_agree<Renormalised, short_run>(packed);
        gradients_agree<Sigmoid, short_run>(packed);
        gradients_agree<Steered, short_run>(packed);
        gradients_agree<Switched, short_run>(packed);
        gradients_agree<SparseExperts, short_run>(packed);
        gradients_agree<Hybrid, short_run>(packed);
    }
}

TEST_CASE("experts: no suffix reaches a prefix") {
    prefix_is_independent<Mixtral, short_run>();
    prefix_is_independent<Steered, short_run>();
    prefix_is_independent<Switched, short_run>();
    prefix_is_independent<SparseExperts, short_run>();
    prefix_is_independent<Hybrid, short_run>();
}

TEST_CASE("experts: packed documents do not see each other") {
    documents_are_apart<Mixtral, short_run>();
    documents_are_apart<Steered, short_run>();
}

TEST_CASE("experts: steps repeat bit for bit") {
    steps_repeat<Steered, short_run>();
    steps_repeat<SparseExperts, short_run>();
}

TEST_CASE("experts: decoding equals evaluation") {
    decoding_equals_evaluation<Mixtral, short_run>();
    decoding_equals_evaluation<Steered, short_run>();
    decoding_equals_evaluation<SparseExperts, short_run>();
    decoding_equals_evaluation<Hybrid, short_run>();
}
