// SPDX-License-Identifier: MIT
// Seeded inputs, comparisons and numeric slopes for tests of operations. No Catch2 here.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "sdepth/rows.hpp"

namespace sdepth_test {

/// n normal numbers, each exact in float: host<float> and host<double> can start from the same ones.
template <class T>
std::vector<T> samples(long long n, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    std::normal_distribution<double> draw;
    std::vector<T> x(static_cast<std::size_t>(n));
    for (T& e : x) e = static_cast<T>(static_cast<float>(draw(random)));
    return x;
}

/// n times NaN: what nobody may read, and what shows where nobody wrote.
template <class T>
std::vector<T> poison(long long n) {
    return std::vector<T>(static_cast<std::size_t>(n), std::numeric_limits<T>::quiet_NaN());
}

/// Puts NaN into the dead rows of x, `width` numbers a row.
template <class T>
void poison_dead(std::vector<T>& x, const sdepth::batch_rows& rows, int width) {
    for (int b = 0; b < rows.batch; ++b)
        for (long long i = rows.first(b) + rows.each.of(b); i < rows.first(b + 1); ++i)
            for (int c = 0; c < width; ++c)
                x[static_cast<std::size_t>(i * width + c)] = std::numeric_limits<T>::quiet_NaN();
}

/// Whether exactly the dead rows of x are NaN.
template <class T>
bool dead_alone_are_nan(const std::vector<T>& x, const sdepth::batch_rows& rows, int width) {
    for (int b = 0; b < rows.batch; ++b)
        for (int i = 0; i < rows.each.capacity; ++i)
            for (int c = 0; c < width; ++c)
                if (std::isnan(x[static_cast<std::size_t>((rows.first(b) + i) * width + c)]) != (i >= rows.each.of(b)))
                    return false;
    return true;
}

/// Equal bit for bit, NaN included.
template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
    return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// <a, b> over places where neither is NaN.
template <class T>
double inner(const std::vector<T>& a, const std::vector<T>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (!std::isnan(a[i]) && !std::isnan(b[i])) sum += static_cast<double>(a[i]) * static_cast<double>(b[i]);
    return sum;
}

/// Largest |got - want| over the root mean square of want; NaN must stand in the same places.
template <class A, class B>
double distance(const std::vector<A>& got, const std::vector<B>& want) {
    double worst = 0, square = 0;
    std::size_t n = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        if (std::isnan(got[i]) != std::isnan(want[i])) return std::numeric_limits<double>::infinity();
        if (std::isnan(want[i])) continue;
        worst = std::max(worst, std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i])));
        square += static_cast<double>(want[i]) * static_cast<double>(want[i]);
        ++n;
    }
    return worst == 0 ? 0 : worst / std::sqrt(square / static_cast<double>(n));
}

/// The gate of every gradient: largest |g - slope| / max(|g|, 1e-3 rms(g)) over the numbers of x, to be at most 1e-6.
/// Slopes are central differences of order eight with step .01: for smooth losses of size 100 and less the formula errs
/// by about step^8 / 630 of the ninth derivative and 1e-14 / step of the loss, both below a thousandth of the gate.
/// Numbers of x that are NaN belong to dead rows and are left out.
template <class Loss>
double gradient_defect(const Loss& loss, std::vector<double>& x, const std::vector<double>& grad) {
    constexpr double weight[4] = {4.0 / 5, -1.0 / 5, 4.0 / 105, -1.0 / 280};
    constexpr double step = 0.01;
    double square = 0;
    std::size_t n = 0;
    for (std::size_t i = 0; i < x.size(); ++i)
        if (!std::isnan(x[i])) square += grad[i] * grad[i], ++n;
    if (n == 0) return std::numeric_limits<double>::infinity();
    const double floor = 1e-3 * std::sqrt(square / static_cast<double>(n));
    double worst = 0;
    for (std::size_t i = 0; i < x.size(); ++i) {
        const double keep = x[i];
        if (std::isnan(keep)) continue;
        double slope = 0;
        for (int k = 1; k <= 4; ++k) {
            x[i] = keep + k * step;
            const double up = loss();
            x[i] = keep - k * step;
            slope += weight[k - 1] * (up - loss()) / step;
        }
        x[i] = keep;
        const double defect = std::abs(grad[i] - slope) / std::max(std::abs(grad[i]), floor);
        if (!(defect <= worst)) worst = defect;  // NaN counts
    }
    return worst;
}

}  // namespace sdepth_test
