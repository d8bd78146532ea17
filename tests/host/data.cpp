// SPDX-License-Identifier: MIT
// Batches: every window once an epoch, resume at every offset, the same data for every division into ranks and
// micro-batches, targets that stop at documents, and held-out text covered once whatever the batch size.
#include "sdepth/data.hpp"

#include <map>
#include <numeric>
#include <set>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace sdepth;

namespace {

/// Documents of the given lengths; token i of the corpus is i, so that a token tells its position.
corpus counting_corpus(const temporary_folder& folder, const std::vector<std::uint32_t>& lengths) {
    std::uint32_t next = 0;
    for (std::size_t d = 0; d < lengths.size(); ++d) {
        std::vector<std::uint32_t> tokens(lengths[d]);
        std::iota(tokens.begin(), tokens.end(), next);
        next += lengths[d];
        write_token_file(folder / (std::string(1, static_cast<char>('a' + d)) + ".bin"), tokens,
                         {.tokenizer = "count", .vocabulary = 65536});
    }
    return corpus::open(folder.path());
}

/// First tokens of the sequences of one step, over all micro-batches and ranks, sorted.
std::vector<int> windows_of_step(const corpus& text, batch_layout layout, std::uint64_t seed, std::uint64_t step) {
    std::vector<int> out;
    token_batch batch;
    for (layout.rank = 0; layout.rank < layout.ranks; ++layout.rank) {
        const training_batches data(text, layout, seed);
        for (int micro = 0; micro < layout.micro_batches; ++micro) {
            data.fill(step, micro, batch);
            for (int row = 0; row < batch.sequences; ++row)
                out.push_back(batch.tokens[static_cast<std::size_t>(row * batch.length)]);
        }
    }
    std::sort(out.begin(), out.end());
    return out;
}

}  // namespace

TEST_CASE("an epoch's order is a permutation", "[data]") {
    for (const std::uint64_t count : {1u, 2u, 3u, 4u, 5u, 17u, 64u, 65u, 1000u}) {
        std::set<std::uint64_t> seen;
        for (std::uint64_t i = 0; i < count; ++i) {
            const std::uint64_t x = shuffled(5, 3, count, i);
            REQUIRE(x < count);
            seen.insert(x);
        }
        CHECK(seen.size() == count);
    }
    static_assert(shuffled(1, 0, 1, 0) == 0);
    CHECK(shuffled(1, 0, std::uint64_t{1} << 62, 12345) < std::uint64_t{1} << 62);
}

TEST_CASE("an epoch's order is random", "[data]") {
    // All 24 orders of 4 windows, and for 100 windows no correlation of neighbours, seeds or epochs.
    std::map<std::vector<std::uint64_t>, int> orders;
    for (std::uint64_t seed = 0; seed < 2400; ++seed) {
        std::vector<std::uint64_t> order;
        for (std::uint64_t i = 0; i < 4; ++i) order.push_back(shuffled(seed, 0, 4, i));
        ++orders[order];
    }
    CHECK(orders.size() == 24);
    double chi2 = 0;
    for (const auto& [order, times] : orders) chi2 += (times - 100) * (times - 100) / 100.0;
    CHECK(chi2 < 58);  // 23 degrees of freedom: exceeded with probability 1e-4
    int neighbours = 0, same_place = 0;
    for (std::uint64_t epoch = 0; epoch < 100; ++epoch)
        for (std::uint64_t i = 0; i + 1 < 100; ++i) {
            neighbours += shuffled(9, epoch, 100, i) + 1 == shuffled(9, epoch, 100, i + 1);
            same_place += shuffled(9, epoch, 100, i) == shuffled(9, epoch + 1, 100, i);
        }
    CHECK(neighbours < 140);  // about 99 each, standard deviation 10
    CHECK(same_place < 140);
}

TEST_CASE("every token of the window set is used once an epoch", "[data]") {
    const temporary_folder folder;
    const corpus text = counting_corpus(folder, {37, 1, 62, 23});  // 123 tokens: 24 windows of 5 and a rest of 3
    const training_batches data(text, {.length = 5, .sequences = 3, .micro_batches = 2}, 11);
    REQUIRE(data.windows() == 24);
    token_batch batch;
    for (std::uint64_t epoch = 0; epoch < 3; ++epoch) {
        std::vector<int> used(120), predicted(121);
        for (std::uint64_t step = 4 * epoch; step < 4 * epoch + 4; ++step)
            for (int micro = 0; micro < 2; ++micro) {
                data.fill(step, micro, batch);
                for (const int t : batch.tokens) ++used.at(static_cast<std::size_t>(t));
                for (const int t : batch.targets)
                    if (t >= 0) ++predicted.at(static_cast<std::size_t>(t));
            }
        CHECK(used == std::vector<int>(120, 1));
        std::vector<int> want(121, 1);
        for (const std::size_t start : {0u, 37u, 38u, 100u})
            want[start] = 0;  // nothing predicts a document's first token
        CHECK(predicted == want);
    }
    CHECK(data.epochs(4) == 1.0);
}

TEST_CASE("a run resumes at every offset", "[data]") {
    const temporary_folder folder;
    const corpus text = counting_corpus(folder, {50, 53});
    const batch_layout layout{.length = 4, .sequences = 3, .micro_batches = 2};
    std::vector<token_batch> whole;
    const training_batches data(text, layout, 3);
    token_batch batch;
    for (std::uint64_t step = 0; step < 20; ++step)
        for (int micro = 0; micro < 2; ++micro) {
            data.fill(step, micro, batch);
            whole.push_back(batch);
        }
    for (std::uint64_t stop = 0; stop < 20; ++stop) {
        const training_batches resumed(text, layout, 3);
        for (std::uint64_t step = stop; step < 20; ++step)
            for (int micro = 0; micro < 2; ++micro) {
                resumed.fill(step, micro, batch);
                REQUIRE(batch == whole[2 * step + static_cast<std::size_t>(micro)]);
            }
    }
    training_batches(text, layout, 4).fill(0, 0, batch);
    CHECK_FALSE(batch == whole[0]);
}

TEST_CASE("a step sees the same sequences on any number of ranks and micro-batches", "[data]") {
    const temporary_folder folder;
    const corpus text = counting_corpus(folder, {400});
    const batch_layout one{.length = 4, .sequences = 12};
    for (std::uint64_t step = 0; step < 30; ++step) {
        const auto want = windows_of_step(text, one, 7, step);
        CHECK(windows_of_step(text, {.length = 4, .sequences = 3, .micro_batches = 4}, 7, step) == want);
        CHECK(windows_of_step(text, {.length = 4, .sequences = 3, .ranks = 4}, 7, step) == want);
        CHECK(windows_of_step(text, {.length = 4, .sequences = 2, .micro_batches = 3, .ranks = 2}, 7, step) == want);
    }
}

TEST_CASE("documents in a window", "[data]") {
    const temporary_folder folder;
    const corpus text = counting_corpus(folder, {3, 1, 6});
    token_batch batch;
    validation_batches(text, {.length = 8, .sequences = 2}).fill(0, batch);
    CHECK(batch.tokens == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 0, 0, 0, 0, 0});
    CHECK(batch.targets == std::vector<int>{1, 2, -1, -1, 5, 6, 7, 8, 9, -1, -1, -1, -1, -1, -1, -1});
    CHECK(batch.document == std::vector<int>{0, 0, 0, 1, 2, 2, 2, 2, 0, 0, -1, -1, -1, -1, -1, -1});
    CHECK(batch.first == std::vector<int>{0, 0, 0, 3, 4, 4, 4, 4, 0, 0, 8, 8, 8, 8, 8, 8});
    CHECK(batch.live == std::vector<int>{8, 2});
    CHECK(batch.targets_count == 7);
    validation_batches(text, {.length = 8, .sequences = 2, .end = document_end::next}).fill(0, batch);
    CHECK(batch.targets == std::vector<int>{1, 2, 3, 4, 5, 6, 7, 8, 9, -1, -1, -1, -1, -1, -1, -1});
    CHECK(batch.targets_count == 9);
}

TEST_CASE("held-out text is covered once, whatever the batch size and the number of ranks", "[data]") {
    const temporary_folder folder;
    const corpus text = counting_corpus(folder, {30, 41, 6});
    std::map<std::vector<int>, int> want;  // every sequence of the pass
    for (const int sequences : {1, 2, 3, 7, 50})
        for (const int ranks : {1, 2, 3}) {
            std::map<std::vector<int>, int> seen;
            std::vector<int> used(77);
            std::int64_t targets = 0;
            token_batch batch;
            std::uint64_t batches = 0;
            for (int rank = 0; rank < ranks; ++rank) {
                const validation_batches data(text,
                                              {.length = 9, .sequences = sequences, .rank = rank, .ranks = ranks});
                batches = data.count();
                for (std::uint64_t i = 0; i < data.count(); ++i) {
                    data.fill(i, batch);
                    targets += batch.targets_count;
                    for (std::size_t row = 0; row < static_cast<std::size_t>(sequences); ++row) {
                        const auto cell = static_cast<std::ptrdiff_t>(9 * row);
                        if (batch.live[row] == 0) continue;
                        ++seen[std::vector<int>(batch.targets.begin() + cell, batch.targets.begin() + cell + 9)];
                        for (int k = 0; k < batch.live[row]; ++k)
                            ++used.at(static_cast<std::size_t>(batch.tokens[9 * row + static_cast<std::size_t>(k)]));
                    }
                }
            }
            CHECK(used == std::vector<int>(77, 1));
            CHECK(targets == 77 - 3);
            CHECK(batches == static_cast<std::uint64_t>((9 + sequences * ranks - 1) / (sequences * ranks)));
            if (want.empty()) want = seen;
            CHECK(seen == want);
        }
}

TEST_CASE("layouts that cannot work are refused", "[data]") {
    const temporary_folder folder;
    const corpus text = counting_corpus(folder, {10});
    CHECK_THROWS_WITH(training_batches(text, {.length = 11, .sequences = 1}, 0),
                      "sdepth: the training text has 10 tokens, fewer than one sequence of 11; shorten the sequence or "
                      "give more text");
    CHECK_THROWS_AS(training_batches(text, {.length = 0, .sequences = 1}, 0), error);
    CHECK_THROWS_AS(training_batches(text, {.length = 1, .sequences = 1, .rank = 2, .ranks = 2}, 0), error);
    CHECK_THROWS_AS(validation_batches(text, {.length = 1, .sequences = 0}), error);
    CHECK_NOTHROW(training_batches(text, {.length = 10, .sequences = 1}, 0));
}
