// SPDX-License-Identifier: MIT
// The laws for dense layers over their policies.
#include "laws/models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

TEST_CASE("dense: gradients agree with differences") {
    for (const bool packed : {false, true}) {
        gradients_agree<Qwen, short_run>(packed);
        gradients_agree<Olmo, short_run>(packed);
        gradients_agree<Bare, short_run>(packed);
    }
}

TEST_CASE("dense: no suffix reaches a prefix") {
    prefix_is_independent<Qwen, short_run>();
    prefix_is_independent<Olmo, short_run>();
    prefix_is_independent<Bare, short_run>();
}

TEST_CASE("dense: packed documents do not see each other") {
    documents_are_apart<Qwen, short_run>();
    documents_are_apart<Olmo, short_run>();
    documents_are_apart<Bare, short_run>();
}

TEST_CASE("dense: steps repeat bit for bit") { steps_repeat<Qwen, short_run>(); }
