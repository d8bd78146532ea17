// SPDX-License-Identifier: MIT
// The laws for sparse depth over what its chosen rows see.
#include "laws/models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

TEST_CASE("sparse context keeps the laws") { keep_the_laws(context_models{}); }

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
