// SPDX-License-Identifier: MIT
// Decoding against evaluation for every model of the laws whose routing is causal: all of them.
#include "laws/models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

TEST_CASE("decoding equals evaluation: dense") {
    decoding_equals_evaluation<Qwen, short_run>();
    decoding_equals_evaluation<Olmo, short_run>();
    decoding_equals_evaluation<Bare, short_run>();
}

TEST_CASE("decoding equals evaluation: sparse depth") {
    decoding_equals_evaluation<XMoD, short_run>();
    decoding_equals_evaluation<MoD, short_run>();
    decoding_equals_evaluation<Printed, short_run>();
    decoding_equals_evaluation<Raw, short_run>();
    decoding_equals_evaluation<FullKeys, short_run>();
    decoding_equals_evaluation<FullKeysPost, short_run>();
    decoding_equals_evaluation<Windowed, short_run>();
    decoding_equals_evaluation<RoutedFfn, short_run>();
    decoding_equals_evaluation<NoAnchors, short_run>();
    decoding_equals_evaluation<Looped, short_run>();
    decoding_equals_evaluation<All, short_run>();
}
