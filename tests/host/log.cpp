// SPDX-License-Identifier: MIT
// The JSON-lines log: format, exact numbers, resume without double or lost steps.
#include "sdepth/log.hpp"

#include <limits>
#include <vector>

#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace sdepth;

TEST_CASE("a line is one JSON object", "[log]") {
    const temporary_folder folder;
    json_log log(folder / "x.jsonl", 0);
    const std::vector<float> loads{0.5f, 1, std::numeric_limits<float>::infinity()};
    log.write({{"step", 0},
               {"loss", 0.1},
               {"note", "a \"b\"\n"},
               {"good", true},
               {"loads", std::span<const float>(loads)},
               {"big", std::uint64_t{18446744073709551615u}},
               {"bad", std::numeric_limits<double>::quiet_NaN()}});
    CHECK(read_bytes(folder / "x.jsonl") ==
          "{\"step\": 0, \"loss\": 0.1, \"note\": \"a \\\"b\\\"\\u000a\", \"good\": true, \"loads\": [0.5,1,\"inf\"], "
          "\"big\": 18446744073709551615, \"bad\": \"nan\"}\n");  // and on disk while the log is still open
}

TEST_CASE("numbers read back exactly", "[log]") {
    for (const double x : {1.0 / 3, 2.718281828459045e-5, 6.02e23, 5e-324})
        CHECK(json_reader(log_value(x).text(), "", "").number() == x);
}

TEST_CASE("a resumed run's log has every step once", "[log]") {
    const temporary_folder folder;
    const auto path = folder / "x.jsonl";
    const auto run = [&](int from, int to) {
        json_log log(path, static_cast<std::uint64_t>(from));
        if (from == 0) log.write({{"formula", "dense"}});
        for (int step = from; step < to; ++step) {
            log.write({{"step", step}, {"loss", 1.0 / (step + 1)}});
            if (step % 2) log.write({{"step", step}, {"valid", 2.0 / (step + 1)}});
        }
    };
    run(0, 10);
    const std::string whole = read_bytes(path);
    for (int checkpoint = 1; checkpoint <= 10; ++checkpoint)
        for (int stopped = checkpoint; stopped <= 10; ++stopped) {
            run(0, stopped);
            write_bytes(path, read_bytes(path) + "{\"step\": 7, \"lo");  // killed inside a line
            run(checkpoint, 10);
            REQUIRE(read_bytes(path) == whole);
        }
    run(0, 10);
    CHECK(read_bytes(path) == whole);
    json_log(path, 10);
    CHECK(read_bytes(path) == whole);
}

TEST_CASE("a log that is none is left alone, by a new run too", "[log]") {
    const temporary_folder folder;
    const auto path = folder / "x.jsonl";
    for (const char* text : {"hello\n", "hello", "{\"step\": 1}\n{\"step\": -1}\n", "{\"step\": 1} x\n", "[]\n", "\n",
                             "{\"step\": 1}\nhello", "{\"text\": \"a data set\"}\n", "{\"text\": 1}"}) {
        for (const std::uint64_t next_step : {0U, 1U}) {
            write_bytes(path, text);
            CHECK_THROWS_AS(json_log(path, next_step), error);
            CHECK(read_bytes(path) == text);
        }
    }
    CHECK_THROWS_AS(json_log(folder / "absent/x.jsonl", 0), error);
}

TEST_CASE("a new run takes the place of an old log, whole or cut off in its first line", "[log]") {
    const temporary_folder folder;
    const auto path = folder / "x.jsonl";
    for (const char* text :
         {"", "{\"ste", "{\"step\": 0, \"lo", "{\"step\": 3}\n", "{\"a\": 1}\n{\"step\": 3}\n{\"st"}) {
        write_bytes(path, text);
        json_log(path, 0);
        CHECK(read_bytes(path).empty());
    }
}

TEST_CASE("a log knows what the last step before the resume wrote", "[log]") {
    const temporary_folder folder;
    const auto path = folder / "x.jsonl";
    write_bytes(path, "{\"step\": 0, \"valid\": 1}\n{\"step\": 1, \"loss\": 2}\n{\"step\": 2, \"valid\": 3}\n");
    const json_log log(path, 2);
    CHECK(log.last_step_has("loss"));
    CHECK_FALSE(log.last_step_has("valid"));
}
