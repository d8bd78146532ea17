// SPDX-License-Identifier: MIT
// Logarithm and power as constant expressions. Rank 0.
#pragma once

#include <limits>

#include "sdepth/error.hpp"

namespace sdepth::inline v0 {

namespace detail {

// std::log and std::pow are no constant expressions in C++20. One definition serves compile time and run time, so that
// both give the same digits; its error is that of rounding the exponent times ln x (tests/host/law.cpp).
inline constexpr double ln_2 = 0.693147180559945309417232121458176568;

/// ln x. Positive, finite numbers only, for every size of the law is one.
constexpr double log_of(double x) {
    if (!(x > 0 && x <= std::numeric_limits<double>::max())) {
        throw error("a size given to the law is not a positive, finite number: set every field of law_point");
    }
    int doublings = 0;
    while (x > 1.5) {
        x /= 2;
        ++doublings;
    }
    while (x < 0.75) {
        x *= 2;
        --doublings;
    }
    const double t = (x - 1) / (x + 1);
    double sum = 0;
    double power = t;
    for (int n = 1; n <= 27; n += 2, power *= t * t) sum += power / n;
    return doublings * ln_2 + 2 * sum;
}

constexpr double power_of(double x, double exponent) {
    const double y = exponent * log_of(x);
    const int doublings = static_cast<int>(y / ln_2 + (y < 0 ? -0.5 : 0.5));
    const double rest = y - doublings * ln_2;
    double result = 1;
    for (int n = 16; n >= 1; --n) result = 1 + result * rest / n;
    for (int i = 0; i < doublings; ++i) result *= 2;
    for (int i = 0; i > doublings; --i) result /= 2;
    return result;
}

}  // namespace detail

}  // namespace sdepth::inline v0
