// SPDX-License-Identifier: MIT
// The order-2 byte model: a case computed by hand, the two ends of its range, and documents that do not see each other.
#include "common/byte_baseline.hpp"

#include <cmath>

#include "sdepth/random.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

using namespace sdepth;

namespace {

corpus text(const temporary_folder& folder, const std::string& name, const std::vector<std::string>& documents) {
    std::filesystem::create_directory(folder / name);
    for (std::size_t d = 0; d < documents.size(); ++d)
        write_bytes(folder / (name + "/" + std::to_string(d)), documents[d]);
    return corpus::open(folder / name);
}

}  // namespace

TEST_CASE("the order-2 byte model by hand", "[byte_baseline]") {
    const temporary_folder folder;
    const double b0 = (1 + 2 / 256.0) / (3 + 2);  // in "aab": b once among 3 bytes of 2 kinds
    const double b1 = (1 + 2 * b0) / (2 + 2);     // after a: a, b
    const double b2 = (1 + 1 * b1) / (1 + 1);     // after aa: b
    const double a0 = (2 + 2 / 256.0) / (3 + 2), a1 = (1 + 2 * a0) / (2 + 2);
    const auto training = text(folder, "training", {"aab"});
    CHECK(byte_baseline(training, text(folder, "ab", {"ab"})) == Approx(-std::log(b1)).epsilon(1e-12));
    CHECK(byte_baseline(training, text(folder, "aab", {"aab"})) ==
          Approx(-(std::log(a1) + std::log(b2)) / 2).epsilon(1e-12));
    CHECK(byte_baseline(training, text(folder, "a_ab", {"a", "ab"})) == Approx(-std::log(b1)).epsilon(1e-12));
}

TEST_CASE("the order-2 byte model between certainty and noise", "[byte_baseline]") {
    const temporary_folder folder;
    std::string regular, noise;
    for (std::uint64_t i = 0; i < 100'000; ++i) {
        regular += "abcd"[i % 4];
        noise += static_cast<char>(random_words(1, random_use::check, 0, i).word[0] & 255);
    }
    CHECK(byte_baseline(text(folder, "r", {regular}), text(folder, "s", {regular.substr(0, 1000)})) < 0.01);
    const double loss = byte_baseline(text(folder, "n", {noise}), text(folder, "m", {noise.substr(0, 50'000)}));
    const double fresh =
        byte_baseline(text(folder, "x", {noise.substr(0, 50'000)}), text(folder, "y", {noise.substr(50'000)}));
    CHECK(loss < std::log(256.0));
    CHECK(fresh > std::log(256.0));
    const temporary_folder tokens;
    write_token_file(tokens / "a.bin", std::vector<std::uint32_t>{1, 2}, {.tokenizer = "gpt2", .vocabulary = 50257});
    CHECK_THROWS_AS(byte_baseline(corpus::open(tokens / "a.bin"), corpus::open(tokens / "a.bin")), error);
}
