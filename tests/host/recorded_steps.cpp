// SPDX-License-Identifier: MIT
// What a backend that records repeated operations is asked to record: here one that only writes down the keys.
#include <vector>

#include "small_training.hpp"
#include "support/catch.hpp"

namespace {

using namespace small_training;

/// The host, and whether a place was asked for the key that it was asked for before.
class watched_host : public host<float> {
  public:
    using host<float>::host;
    template <class Key>
    struct recording {
        std::vector<Key> keys;
    };
    template <class Key, class F>
    void repeat(recording<Key>& place, const Key& key, F body) {
        repeated.push_back(!place.keys.empty() && place.keys.back() == key);
        place.keys.push_back(key);
        body();
    }

    std::vector<bool> repeated;  // of each call
};

}  // namespace

TEST_CASE("from its second time on every part of an equal step repeats, however many micro-batches it has") {
    std::vector<int> tokens(24), targets(24, 1);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int>(i * 11 % 256);
    for (const int micro_batches : {1, 2, 3}) {
        watched_host backend(1);
        pipeline<XMoD, watched_host, pairs> model(backend);
        model.initialise(3);
        const step_totals totals{.targets = 24LL * micro_batches, .rows = 24LL * micro_batches};
        for (int step = 1; step <= 4; ++step) {
            backend.repeated.clear();
            for (int m = 0; m < micro_batches; ++m) model.accumulate({tokens.data(), targets.data()}, totals);
            model.advance({.rate = 1e-3, .step = step});
            INFO("step " << step << " of " << micro_batches << " micro-batches");
            CHECK(static_cast<int>(backend.repeated.size()) == micro_batches + 1);
            if (step == 1) continue;
            for (const bool again : backend.repeated) CHECK(again);
        }
    }
}
