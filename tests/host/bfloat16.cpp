// SPDX-License-Identifier: MIT
// bfloat16: rounding, special values, and the round trip of all 65,536 bit patterns.
#include "sdepth/bfloat16.hpp"

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "support/catch.hpp"

using sdepth::bfloat16;

static_assert(sizeof(bfloat16) == 2 && std::is_trivially_copyable_v<bfloat16>);
static_assert(bfloat16(1.0f).bits == 0x3f80);
static_assert(bfloat16(-0.0f).bits == 0x8000);
static_assert(bfloat16(1.00390625f).bits == 0x3f80);                        // 1 + 2^-8, a tie: down to even
static_assert(bfloat16(1.01171875f).bits == 0x3f82);                        // 1 + 3 * 2^-8, a tie: up to even
static_assert(bfloat16(0x1.010002p0f).bits == 0x3f81);                      // just above a tie
static_assert(bfloat16(std::numeric_limits<float>::max()).bits == 0x7f80);  // rounds to infinity
static_assert(bfloat16(-std::numeric_limits<float>::infinity()).bits == 0xff80);
static_assert(bfloat16(std::numeric_limits<float>::quiet_NaN()).bits == 0x7fff);
static_assert(bfloat16(std::bit_cast<float>(0xff800001u)).bits == 0x7fff);  // a NaN whose payload is in the lower half
static_assert(bfloat16(std::numeric_limits<float>::denorm_min()).bits == 0);

TEST_CASE("every bfloat16 survives the way through float", "[bfloat16]") {
    for (std::uint32_t bits = 0; bits < 0x10000; ++bits) {
        bfloat16 x;
        x.bits = static_cast<std::uint16_t>(bits);
        const float wide = static_cast<float>(x);
        if (std::isnan(wide))
            REQUIRE(bfloat16(wide).bits == 0x7fff);
        else
            REQUIRE(bfloat16(wide).bits == bits);
    }
}

TEST_CASE("rounding picks the nearer neighbour", "[bfloat16]") {
    for (std::uint32_t high = 0; high < 0x7f7f; high += 13)
        for (std::uint32_t low = 0; low < 0x10000; low += 4093) {
            const std::uint32_t bits = bfloat16(std::bit_cast<float>(high << 16 | low)).bits;
            REQUIRE(bits == (low > 0x8000 || (low == 0x8000 && (high & 1)) ? high + 1 : high));
        }
}
