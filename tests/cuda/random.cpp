// SPDX-License-Identifier: MIT
// Host and GPU draw the same random bits and round to the same bfloat16.
#include "cuda/random.hpp"

#include <bit>

#include "sdepth/bfloat16.hpp"
#include "sdepth/random.hpp"
#include "support/catch.hpp"

using namespace sdepth;

TEST_CASE("normal numbers are bit-equal on host and GPU", "[cuda][random]") {
    constexpr std::uint64_t count = 1 << 20;
    const auto gpu = gpu_normals(2026, count);
    std::uint64_t different = 0;
    for (std::uint64_t i = 0; i < count; ++i)
        different += std::bit_cast<std::uint64_t>(gpu[i]) !=
                     std::bit_cast<std::uint64_t>(random_normal(2026, random_use::check, 3, i));
    CHECK(different == 0);
}

TEST_CASE("bfloat16 is bit-equal on host and GPU", "[cuda][bfloat16]") {
    // Every upper half, with lower halves around the tie and the ends: all exponents, signs, infinities and NaNs.
    std::vector<float> values;
    for (std::uint32_t high = 0; high < 0x10000; ++high)
        for (const std::uint32_t low : {0x0u, 0x1u, 0x7fffu, 0x8000u, 0x8001u, 0xffffu})
            values.push_back(std::bit_cast<float>(high << 16 | low));
    const auto gpu = gpu_bfloat16(values);
    std::uint64_t different = 0;
    for (std::size_t i = 0; i < values.size(); ++i) different += gpu[i] != bfloat16(values[i]).bits;
    CHECK(different == 0);
}
