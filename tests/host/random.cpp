// SPDX-License-Identifier: MIT
// Random numbers: Random123's known answers, moments, and the exactness that host and GPU share.
#include "sdepth/random.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <numbers>
#include <vector>

#include "support/catch.hpp"

using namespace sdepth;

namespace {

constexpr bool same(philox_words a, philox_words b) {
    for (int i = 0; i < 4; ++i)
        if (a.word[i] != b.word[i]) return false;
    return true;
}

// Random123's tests/kat_vectors, the lines "philox4x32 10".
static_assert(same(philox4x32({{0, 0, 0, 0}}, 0, 0), {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}}));
static_assert(same(philox4x32({{~0u, ~0u, ~0u, ~0u}}, ~0u, ~0u), {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}}));
static_assert(same(philox4x32({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, 0xa4093822, 0x299f31d0),
                   {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}}));

}  // namespace

TEST_CASE("seed, use, stream and element all change the number", "[random]") {
    const auto base = random_words(1, random_use::weights, 2, 3);
    CHECK(same(base, random_words(1, random_use::weights, 2, 3)));
    CHECK_FALSE(same(base, random_words(1 + (std::uint64_t{1} << 32), random_use::weights, 2, 3)));
    CHECK_FALSE(same(base, random_words(1, random_use::order, 2, 3)));
    CHECK_FALSE(same(base, random_words(1, random_use::weights, 3, 3)));
    CHECK_FALSE(same(base, random_words(1, random_use::weights, 2, 3 + (std::uint64_t{1} << 32))));
}

TEST_CASE("uniform numbers fill (0, 1) evenly", "[random]") {
    static_assert(random_uniform(0, random_use::weights, 0, 0) < 1);
    constexpr int n = 1 << 16;
    std::vector<int> bins(64);
    for (std::uint64_t i = 0; i < n; ++i) {
        const double x = random_uniform(7, random_use::check, 0, i);
        REQUIRE(x > 0);
        REQUIRE(x < 1);
        ++bins[static_cast<std::size_t>(x * 64)];
    }
    double chi2 = 0;
    for (const int count : bins) chi2 += std::pow(count - n / 64, 2) / (n / 64);
    CHECK(chi2 < 112);  // 63 degrees of freedom: exceeded with probability 1e-4
    CHECK(chi2 > 30);   // fallen short of with probability 1e-4
}

TEST_CASE("the logarithm and the circle agree with the C library", "[random]") {
    double log_error = 0, circle_error = 0;
    const auto check = [&](std::uint32_t word) {
        const double u = (word + 0.5) * 0x1p-32;
        const double want = -2 * std::log(u);
        log_error = std::max(log_error, std::abs(detail::minus_two_log(word) - want) / want);
        const auto p = detail::point_on_circle(word);
        const double angle = 2 * std::numbers::pi * u;
        circle_error = std::max({circle_error, std::abs(p.x - std::cos(angle)), std::abs(p.y - std::sin(angle))});
    };
    for (std::uint64_t word = 0; word < (std::uint64_t{1} << 32); word += 65521)
        check(static_cast<std::uint32_t>(word));
    for (std::uint32_t near = 0; near < 100; ++near)
        for (const std::uint32_t edge : {0u, 1u << 29, 1u << 30, 3u << 29, 1u << 31, 3u << 30}) {
            check(edge + near);
            check(edge - near);
        }
    CHECK(log_error < 1e-15);
    CHECK(circle_error < 2e-15);  // the angle itself is off by up to 4.4e-16 in the comparison
}

TEST_CASE("normal numbers have the moments of a normal distribution", "[random]") {
    constexpr int blocks = 1 << 18;
    double sum[5] = {};
    double cross = 0;
    for (std::uint64_t b = 0; b < blocks; ++b) {
        const auto four = random_normals(11, random_use::check, 5, b);
        cross += four.value[0] * four.value[1];
        for (const double x : four.value)
            for (int power = 1; power <= 4; ++power) sum[power] += std::pow(x, power);
    }
    const double n = 4.0 * blocks;  // about 1e6: one standard error is 1e-3 times sqrt(1, 2, 15, 96)
    CHECK(std::abs(sum[1] / n) < 4e-3);
    CHECK(std::abs(sum[2] / n - 1) < 4e-3 * std::sqrt(2));
    CHECK(std::abs(sum[3] / n) < 4e-3 * std::sqrt(15));
    CHECK(std::abs(sum[4] / n - 3) < 4e-3 * std::sqrt(96));
    CHECK(std::abs(cross / blocks) < 8e-3);
    for (std::uint64_t i = 0; i < 4; ++i) {
        CHECK(random_normal(11, random_use::check, 5, 4 * 77 + i) ==
              random_normals(11, random_use::check, 5, 77).value[i]);
        CHECK(random_word(11, random_use::check, 5, 4 * 77 + i) == random_words(11, random_use::check, 5, 77).word[i]);
    }
}

TEST_CASE("normal numbers are the same bits in every build", "[random]") {
    // FNV-1a over the bits of 4096 numbers: -O0, -O3, -march=native and the GPU must all give this value.
    std::uint64_t hash = 0xcbf29ce484222325;
    for (std::uint64_t i = 0; i < 4096; ++i) {
        const double x = random_normal(2026, random_use::weights, 3, i);
        hash = (hash ^ std::bit_cast<std::uint64_t>(x)) * 0x100000001b3;
    }
    CHECK(hash == 0xe37e7397d77835ff);
}
