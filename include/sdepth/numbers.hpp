// SPDX-License-Identifier: MIT
// Exact arithmetic for counts: a saturating integer and a reduced fraction. Nothing here knows a model. Rank 0.
#pragma once

#include <compare>
#include <concepts>
#include <limits>
#include <numeric>

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

/// A non-negative whole number that sticks at its largest value instead of wrapping round, so that one test at the
/// end (`overflowed`) finds an overflow anywhere on the way.
class count {
  public:
    static constexpr long long largest = std::numeric_limits<long long>::max();

    constexpr count() = default;
    constexpr count(long long value) : value_(value) {}  // NOLINT(google-explicit-constructor): a count is a number

    constexpr long long value() const { return value_; }
    constexpr bool overflowed() const { return value_ == largest; }

    friend constexpr count operator+(count a, count b) {
        return a.value_ > largest - b.value_ ? count(largest) : count(a.value_ + b.value_);
    }
    friend constexpr count operator*(count a, count b) {
        if (a.value_ == 0 || b.value_ == 0) return 0;
        return a.value_ > largest / b.value_ ? count(largest) : count(a.value_ * b.value_);
    }
    constexpr count& operator+=(count b) { return *this = *this + b; }
    friend constexpr bool operator==(count, count) = default;

  private:
    long long value_ = 0;
};

/// ceil(a / b) for a >= 0, b > 0.
constexpr long long ceil_div(long long a, long long b) { return a / b + (a % b != 0 ? 1 : 0); }

/// A non-negative fraction in lowest terms; compares with whole numbers. Its whole part is kept apart from the rest, so
/// that a count near 63 bits may still have a denominator. Sticks on overflow: of the whole part (`too_large`), or of
/// the denominator (`too_fine`), which sums of many unlike fractions meet.
class ratio {
  public:
    constexpr ratio() = default;
    constexpr ratio(long long whole) : whole_(whole) {}  // NOLINT(google-explicit-constructor): a whole number is one
    constexpr ratio(count whole) : whole_(whole.value()) {}  // NOLINT(google-explicit-constructor)
    /// A real number would lose its fraction: compare value() with it.
    template <std::floating_point Real>
    ratio(Real) = delete;
    constexpr ratio(long long num, long long den) : whole_(num / den), rest_(num % den) {
        const long long divisor = std::gcd(rest_, den);
        rest_ /= divisor;
        den_ = den / divisor;
    }

    /// The fraction is whole() + rest() / den(), and num() / den() with a numerator that may stick.
    constexpr long long whole() const { return whole_; }
    constexpr long long rest() const { return rest_; }
    constexpr long long den() const { return den_; }
    constexpr long long num() const { return (count(whole_) * count(den_) + count(rest_)).value(); }
    constexpr double value() const {
        const double den = static_cast<double>(den_);
        if (num() != count::largest) return static_cast<double>(num()) / den;
        return static_cast<double>(whole_) + static_cast<double>(rest_) / den;
    }
    constexpr bool too_large() const { return whole_ == count::largest; }
    constexpr bool too_fine() const { return den_ == count::largest; }
    constexpr bool overflowed() const { return too_large() || too_fine(); }

    friend constexpr ratio operator+(ratio a, ratio b) {
        const count whole = count(a.whole_) + count(b.whole_);
        if (whole.overflowed() || a.too_fine() || b.too_fine()) return stuck(whole.overflowed());
        if (a.rest_ == 0) return {whole, b.rest_, b.den_};
        if (b.rest_ == 0) return {whole, a.rest_, a.den_};
        const long long divisor = std::gcd(a.den_, b.den_);
        const count rest = count(a.rest_) * count(b.den_ / divisor) + count(b.rest_) * count(a.den_ / divisor);
        return ratio(whole) + fraction(rest, count(a.den_) * count(b.den_ / divisor));
    }
    friend constexpr ratio operator*(ratio a, ratio b) {
        if (a.overflowed() || b.overflowed()) return stuck(a.too_large() || b.too_large());
        if (a.rest_ == 0 && b.rest_ == 0) return count(a.whole_) * count(b.whole_);
        if (a.num() != count::largest && b.num() != count::largest) {
            const ratio cancelled = product(a.num(), a.den_, b.num(), b.den_);
            if (!cancelled.overflowed()) return cancelled;
        }
        return ratio(count(a.whole_) * count(b.whole_)) + share(a.whole_, b.rest_, b.den_) +
               share(b.whole_, a.rest_, a.den_) + product(a.rest_, a.den_, b.rest_, b.den_);
    }
    friend constexpr ratio operator/(ratio a, ratio b) {
        if (b.overflowed() || b == ratio(0) || b.num() == count::largest) return stuck(!b.too_fine());
        return a * ratio(b.den_, b.num());
    }
    constexpr ratio& operator+=(ratio b) { return *this = *this + b; }
    friend constexpr bool operator==(ratio, ratio) = default;
    /// Exact; what is `too_fine` has no order.
    friend constexpr std::partial_ordering operator<=>(ratio a, ratio b) {
        if (a.too_fine() || b.too_fine()) return std::partial_ordering::unordered;
        if (a.whole_ != b.whole_) return a.whole_ <=> b.whole_;
        return order(a.rest_, a.den_, b.rest_, b.den_);
    }

  private:
    constexpr ratio(count whole, long long rest, long long den) : whole_(whole.value()), rest_(rest), den_(den) {}

    // a / b against c / d by their continued fractions, for products may not fit.
    static constexpr std::strong_ordering order(long long a, long long b, long long c, long long d) {
        if (a / b != c / d) return a / b <=> c / d;
        if (a % b == 0 || c % d == 0) return a % b <=> c % d;
        return order(d, c % d, b, a % b);
    }
    static constexpr ratio stuck(bool large) { return {large ? count::largest : 0, 0, large ? 1 : count::largest}; }
    static constexpr ratio fraction(count num, count den) {
        return num.overflowed() || den.overflowed() ? stuck(false) : ratio(num.value(), den.value());
    }
    // a / b times c / d, common factors taken out first.
    static constexpr ratio product(long long a, long long b, long long c, long long d) {
        const long long x = std::gcd(a, d);
        const long long y = std::gcd(c, b);
        return fraction(count(a / x) * count(c / y), count(b / y) * count(d / x));
    }
    // n times a proper fraction, the whole part of the product apart.
    static constexpr ratio share(long long n, long long rest, long long den) {
        const long long divisor = std::gcd(n, den);
        const long long d = den / divisor;
        return ratio(count(n / divisor / d) * count(rest)) + fraction(count(n / divisor % d) * count(rest), d);
    }

    long long whole_ = 0;
    long long rest_ = 0;
    long long den_ = 1;
};

}  // namespace sdepth::inline v0
