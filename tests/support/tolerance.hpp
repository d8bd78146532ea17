// SPDX-License-Identifier: MIT
// How far an operation in one type may be from the same in a wider type, with the reason. No number is fitted to a
// result.
#pragma once

#include <cmath>

namespace sdepth_test {

/// Half a unit in the last place of 1.
template <class T>
inline constexpr double unit_roundoff = 0;
template <>
inline constexpr double unit_roundoff<float> = 0x1p-24;
template <>
inline constexpr double unit_roundoff<double> = 0x1p-53;

/// For `distance` of results that are sums of `terms` products, then `roundings` more operations.
///
/// A sum of n independent terms of size s grows like s sqrt(k); each addition rounds by up to u times that, in a random
/// direction: root mean square u s sqrt(1 + ... + n) / sqrt(3) = u s n / sqrt(6), hence u sqrt(n / 6) of the result's
/// own size s sqrt(n). Each further operation rounds by u of the result, which may be four times its root mean square.
/// The largest of some thousand such errors lies within six of their deviations.
template <class T>
double tolerance(double terms, double roundings) {
    return 6 * unit_roundoff<T> * (std::sqrt(terms / 6) + 4 * roundings);
}

}  // namespace sdepth_test
