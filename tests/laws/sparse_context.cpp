// SPDX-License-Identifier: MIT
// The laws for sparse depth over what its chosen rows see, and over where its layers stand.
#include "laws/models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

TEST_CASE("sparse context: gradients agree with differences") {
    for (const bool packed : {false, true}) {
        gradients_agree<ByDocument, short_run>(packed);
        gradients_agree<FullKeys, short_run>(packed);
        gradients_agree<FullKeysPost, short_run>(packed);
        gradients_agree<Windowed, short_run>(packed);
        gradients_agree<RoutedFfn, short_run>(packed);
        gradients_agree<NoAnchors, short_run>(packed);
        gradients_agree<Looped, short_run>(packed);
        gradients_agree<All, short_run>(packed);
    }
}

TEST_CASE("sparse context: no suffix reaches a prefix") {
    prefix_is_independent<FullKeys, short_run>();
    prefix_is_independent<FullKeysPost, short_run>();
    prefix_is_independent<Windowed, short_run>();
    prefix_is_independent<RoutedFfn, short_run>();
    prefix_is_independent<NoAnchors, short_run>();
    prefix_is_independent<Looped, short_run>();
}

TEST_CASE("sparse context: packed documents do not see each other") { documents_are_apart<ByDocument, short_run>(); }

TEST_CASE("sparse context: replays change no bit") {
    constexpr Run full{.seq = 13, .batch = 2, .max_documents = 3, .replay = recompute::full};
    constexpr Run selective{.seq = 13, .batch = 2, .max_documents = 3, .replay = recompute::selective};
    replays_change_no_bit<FullKeys, short_run>();
    constexpr long long bytes[] = {plan<FullKeys, host<double>, full>::saved_bytes,
                                   plan<FullKeys, host<double>, selective>::saved_bytes,
                                   plan<FullKeys, host<double>, short_run>::saved_bytes};
    CHECK(bytes[0] < bytes[1]);
    CHECK(bytes[1] < bytes[2]);
}
