// SPDX-License-Identifier: MIT
// Threads and row blocks of the host backend.
#include "sdepth/kernels/host/parallel.hpp"

#include <atomic>
#include <string>
#include <vector>

#include "sdepth/error.hpp"
#include "support/catch.hpp"

using sdepth::batch_rows;
using sdepth::on_host::row_range;
using sdepth::on_host::workers;

TEST_CASE("workers run every task once", "[parallel]") {
    for (const int threads : {1, 2, 5}) {
        workers team(threads);
        CHECK(team.threads() == threads);
        for (const int tasks : {0, 1, 2, 3, 100}) {
            std::vector<std::atomic<int>> calls(100);
            team.run(tasks, [&](int i) { ++calls[static_cast<std::size_t>(i)]; });
            for (int i = 0; i < 100; ++i) REQUIRE(calls[static_cast<std::size_t>(i)] == (i < tasks ? 1 : 0));
        }
    }
}

TEST_CASE("the first task that throws is heard, and the workers go on", "[parallel]") {
    workers team(3);
    std::atomic<int> calls = 0;
    std::string heard;
    try {
        team.run(50, [&](int i) {
            ++calls;
            if (i >= 7) throw sdepth::error("task " + std::to_string(i));
        });
    } catch (const sdepth::error& e) {
        heard = e.what();
    }
    CHECK(heard == "sdepth: task 7");
    CHECK(calls == 50);
    calls = 0;
    team.run(20, [&](int) { ++calls; });
    CHECK(calls == 20);
    CHECK_THROWS_AS(workers(-1), sdepth::error);
    CHECK_THROWS_AS(workers(1025), sdepth::error);
}

TEST_CASE("row blocks hold each live row once, in order", "[parallel]") {
    const std::vector<int> live{4, 0, 5, 5, 2, -3, 9};
    for (const int* counts : {static_cast<const int*>(nullptr), live.data()}) {
        const batch_rows rows{7, {5, counts}};
        std::vector<long long> want, got;
        for (int b = 0; b < 7; ++b)
            for (int i = 0; i < rows.each.of(b); ++i) want.push_back(rows.first(b) + i);
        for (const row_range& block : sdepth::on_host::row_blocks(rows))
            for (long long row = block.first; row < block.end(); ++row) got.push_back(row);
        CHECK(got == want);
    }
    CHECK(sdepth::on_host::live_ranges({7, {5, live.data()}}).size() == 3);  // 0-3, 10-21, 30-34
    CHECK(sdepth::on_host::live_ranges({7, {5, nullptr}}).size() == 1);
    CHECK(sdepth::on_host::live_ranges({7, {0, nullptr}}).empty());
}
