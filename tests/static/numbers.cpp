// SPDX-License-Identifier: MIT
// Saturating whole numbers and reduced fractions: exact, and an overflow is never lost on the way.
#include "sdepth/numbers.hpp"

#include <type_traits>

namespace {

using namespace sdepth;

constexpr long long largest = count::largest;

static_assert(count(3) + count(4) == count(7) && count(3) * count(4) == count(12) &&
              count(0) * count(largest) == count(0));
static_assert((count(largest) + count(1)).overflowed() && (count(1LL << 32) * count(1LL << 31)).overflowed());
static_assert((count(largest) + count(0)).overflowed(), "the largest value itself counts as an overflow");
static_assert(!(count(largest - 2) + count(1)).overflowed());
static_assert((count(1LL << 62) * count(4)).value() == largest &&
              ((count(1LL << 62) * count(4)) * count(3)).overflowed());

static_assert(ceil_div(0, 8) == 0 && ceil_div(1, 8) == 1 && ceil_div(8, 8) == 1 && ceil_div(9, 8) == 2);

static_assert(ratio(6, 4) == ratio(3, 2) && ratio(6, 4).num() == 3 && ratio(6, 4).den() == 2);
static_assert(ratio(0, 7) == ratio(0) && ratio(0, 7).den() == 1);
static_assert(ratio(1, 6) + ratio(1, 10) == ratio(4, 15) && ratio(1, 2) + ratio(1, 2) == ratio(1));
static_assert(ratio(2, 3) * ratio(9, 4) == ratio(3, 2) && ratio(2, 3) / ratio(4, 9) == ratio(3, 2));
static_assert(ratio(1, 3) != ratio(333'333'333, 1'000'000'000));
static_assert(ratio(3, 4).value() == 0.75);

// Ordered exactly, with whole numbers too, where doubles or products of 63 bits would not tell.
static_assert(ratio(7, 2) > 3 && ratio(7, 2) < 4 && 4 >= ratio(7, 2) && ratio(4) <= 4 && ratio(4) >= 4 &&
              !(ratio(4) < 4));
static_assert(ratio(1, 3) < ratio(1, 2) && ratio(2, 3) > ratio(3, 5) && ratio(5, 7) > ratio(12, 17) &&
              ratio(0) < ratio(1, 9));
static_assert(ratio(1LL << 40, (1LL << 41) + 1) < ratio((1LL << 40) + 1, (1LL << 41) + 3));
static_assert(ratio(largest / 2 - 1, largest / 2) < ratio(largest / 2, largest / 2 + 1));
static_assert(!std::is_constructible_v<ratio, double> && !std::is_constructible_v<ratio, float>);

// Common factors go first, so that a representable result is reached through no larger number.
static_assert(ratio(1LL << 62, 3) * ratio(3, 1LL << 61) == ratio(2));
static_assert(ratio(1, 1LL << 40) + ratio(1, 1LL << 40) == ratio(1, 1LL << 39));

// A large whole part beside a rest: the numerator of one fraction would not fit.
constexpr ratio large_third = ratio(1LL << 62) + ratio(1, 3);
static_assert(!large_third.overflowed() && large_third.whole() == 1LL << 62 && large_third.rest() == 1);
static_assert(large_third.num() == largest && large_third * ratio(1, 2) == ratio(1LL << 61) + ratio(1, 6));
static_assert(large_third + ratio(2, 3) == ratio((1LL << 62) + 1) && ratio(3) * ratio(7, 3) == ratio(7));
static_assert(ratio(9, 2) * ratio(9, 2) == ratio(81, 4) &&
              ratio((1LL << 61) - 1) * ratio(4, 3) == ratio(3074457345618258601) + ratio(1, 3));
static_assert((ratio(1LL << 40) + ratio(1, 3)) * (ratio(1 << 20) + ratio(1, 5)) ==
              ratio(1LL << 60) + ratio(1LL << 40, 5) + ratio(1 << 20, 3) + ratio(1, 15));
static_assert(large_third.value() == 0x1p62 && ratio(7, 2).value() == 3.5);

// Which of the two overflowed: the whole part, or a denominator.
static_assert((ratio(1LL << 62) * ratio(2)).too_large() && !(ratio(1LL << 62) * ratio(2)).too_fine());
static_assert(ratio(1LL << 62) * ratio(2) > ratio(1LL << 62));
constexpr ratio fine = ratio(1, (1LL << 40) + 1) + ratio(1, (1LL << 40) - 1);
static_assert(fine.too_fine() && !fine.too_large() && (fine + ratio(1)).too_fine() && (ratio(1) + fine).too_fine());
static_assert((fine * ratio(2)).too_fine() && (fine + ratio(largest)).too_large() && (ratio(1) / ratio(0)).too_large());
static_assert(!(fine < ratio(1)) && !(fine >= ratio(0)) && fine != ratio(0));

// Overflow sticks: in a numerator or a denominator, also where a factor would cancel (2^63 - 1 is a multiple of 7).
constexpr ratio lost = ratio(1LL << 62) * ratio(2);
static_assert(lost.overflowed() && (lost * ratio(1, 7)).overflowed() && (lost + ratio(1)).overflowed());
static_assert((lost / ratio(7)).overflowed() && (ratio(1, 7) * lost).overflowed());
static_assert((ratio(1, (1LL << 40) + 1) * ratio(1, (1LL << 40) - 1)).overflowed());
static_assert((ratio(1, (1LL << 40) + 1) + ratio(1, (1LL << 40) - 1)).overflowed());

}  // namespace
