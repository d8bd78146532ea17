// SPDX-License-Identifier: MIT
// Exact arithmetic for counts: a saturating integer and a reduced fraction. Nothing here knows a model. Rank 0.
#pragma once

#include <compare>
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

/// A non-negative fraction in lowest terms; compares with whole numbers. Sticks at `count::largest` on overflow.
class ratio {
  public:
    constexpr ratio() = default;
    constexpr ratio(long long whole) : num_(whole) {}      // NOLINT(google-explicit-constructor): a whole number is one
    constexpr ratio(count whole) : num_(whole.value()) {}  // NOLINT(google-explicit-constructor)
    constexpr ratio(long long num, long long den) {
        const long long divisor = std::gcd(num, den);
        num_ = num / divisor;
        den_ = den / divisor;
    }

    constexpr long long num() const { return num_; }
    constexpr long long den() const { return den_; }
    constexpr double value() const { return static_cast<double>(num_) / static_cast<double>(den_); }
    constexpr bool overflowed() const { return num_ == count::largest || den_ == count::largest; }

    friend constexpr ratio operator*(ratio a, ratio b) {
        if (a.overflowed() || b.overflowed()) return {count::largest};  // before a common factor hides it
        const ratio x(a.num_, b.den_);
        const ratio y(b.num_, a.den_);
        return checked(count(x.num_) * count(y.num_), count(x.den_) * count(y.den_));
    }
    friend constexpr ratio operator/(ratio a, ratio b) { return a * ratio(b.den_, b.num_); }
    friend constexpr ratio operator+(ratio a, ratio b) {
        if (a.overflowed() || b.overflowed()) return {count::largest};
        const long long divisor = std::gcd(a.den_, b.den_);
        const count num = count(a.num_) * count(b.den_ / divisor) + count(b.num_) * count(a.den_ / divisor);
        return checked(num, count(a.den_) * count(b.den_ / divisor));
    }
    constexpr ratio& operator+=(ratio b) { return *this = *this + b; }
    friend constexpr bool operator==(ratio, ratio) = default;

  private:
    static constexpr ratio checked(count num, count den) {
        if (num.overflowed() || den.overflowed()) return {count::largest};
        return {num.value(), den.value()};
    }

    long long num_ = 0;
    long long den_ = 1;
};

}  // namespace sdepth::inline v0
