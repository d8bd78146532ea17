// SPDX-License-Identifier: MIT
// Inner loops that several host operations share, written so that a compiler may use vector instructions without
// reordering a sum. Rank 5.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "sdepth/config.hpp"

namespace sdepth::inline v0::on_host::detail {

/// Sum of a[c] b[c], in sixteen running sums.
template <class T>
T dot(const T* a, const T* b, int n) {
    T part[16] = {};
    int c = 0;
    for (; c + 16 <= n; c += 16)
        for (int u = 0; u < 16; ++u) part[u] += a[c + u] * b[c + u];
    for (; c < n; ++c) part[0] += a[c] * b[c];
    for (int half = 8; half > 0; half /= 2)
        for (int u = 0; u < half; ++u) part[u] += part[u + half];
    return part[0];
}

/// e^x. For float without branches, calls or comparisons of floats, which GCC does not vectorise; error below 2 units
/// in the last place; below -87 it gives 0, above 88 infinity.
inline double exponential(double x) { return std::exp(x); }
inline float exponential(float x) {
    const float shifted = x * 1.44269504f + 0x1.8p23f;  // the integer nearest to x / log 2 stands in the low bits
    const float n = shifted - 0x1.8p23f;
    const float r = (x - n * 0.693359375f) - n * -2.12194440e-4f;
    float p = 1.9875691500e-4f;  // minimax polynomial of (e^r - 1 - r) / r^2 (Cephes)
    p = p * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const std::uint32_t exponent = std::bit_cast<std::uint32_t>(shifted) - std::bit_cast<std::uint32_t>(0x1.8p23f);
    const float value = p * std::bit_cast<float>((exponent + 127u) << 23);

    constexpr std::uint32_t infinity = 0x7f800000u, sign = 0x80000000u;
    constexpr auto least = std::bit_cast<std::uint32_t>(-87.0f), most = std::bit_cast<std::uint32_t>(88.0f);
    const auto bits = std::bit_cast<std::uint32_t>(x);  // NaN lies beyond both infinities
    const std::uint32_t below = 0u - static_cast<std::uint32_t>(bits - least <= sign + infinity - least);
    const std::uint32_t above = 0u - static_cast<std::uint32_t>(bits - most <= infinity - most);
    return std::bit_cast<float>((std::bit_cast<std::uint32_t>(value) & ~(below | above)) | (above & infinity));
}

/// The largest of n numbers, n at least 1.
template <class T>
T largest(const T* x, int n) {
    T part[16];
    for (T& p : part) p = x[0];
    int c = 0;
    for (; c + 16 <= n; c += 16)
        for (int u = 0; u < 16; ++u) part[u] = x[c + u] > part[u] ? x[c + u] : part[u];
    for (; c < n; ++c) part[0] = x[c] > part[0] ? x[c] : part[0];
    for (int u = 1; u < 16; ++u) part[0] = part[u] > part[0] ? part[u] : part[0];
    return part[0];
}

/// Sum of n numbers, in sixteen running sums.
template <class T>
T sum(const T* x, int n) {
    T part[16] = {};
    int c = 0;
    for (; c + 16 <= n; c += 16)
        for (int u = 0; u < 16; ++u) part[u] += x[c + u];
    for (; c < n; ++c) part[0] += x[c];
    for (int half = 8; half > 0; half /= 2)
        for (int u = 0; u < half; ++u) part[u] += part[u + half];
    return part[0];
}

/// x[c] = e^(x[c] - top); returns their sum.
template <class T>
T exponentials(T* x, T top, int n) {
    for (int c = 0; c < n; ++c) x[c] = exponential(x[c] - top);
    return sum(x, n);
}

template <class T>
T sigmoid(T x) {
    return T{1} / (T{1} + exponential(-x));
}

/// log(1 + e^x), whose slope is sigmoid(x).
template <class T>
T softplus(T x) {
    return std::max(x, T{0}) + std::log1p(std::exp(-std::abs(x)));
}

}  // namespace sdepth::inline v0::on_host::detail
