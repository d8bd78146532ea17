// SPDX-License-Identifier: MIT
// Random numbers that bf16 holds exactly, and how far results may be from the oracle. No CUDA here.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "sdepth/rows.hpp"
#include "support/catch.hpp"
#include "support/tolerance.hpp"

namespace sdepth_test {

/// Seeds of random inputs, each call another one. The first call prints where they begin: the same program with the
/// same arguments and SDEPTH_SEED set to that draws the same numbers again.
inline std::uint64_t test_seed() {
    static std::uint64_t next = [] {
        const char* const given = std::getenv("SDEPTH_SEED");
        const std::uint64_t seed = given != nullptr ? std::strtoull(given, nullptr, 10) : std::random_device{}();
        std::printf("SDEPTH_SEED=%llu\n", static_cast<unsigned long long>(seed));
        std::fflush(stdout);
        return seed;
    }();
    return next++;
}

inline const double nan = std::numeric_limits<double>::quiet_NaN();

// The nearest number that bf16 holds.
inline double rounded(double x) {
    const float f = static_cast<float>(x);
    std::uint32_t bits;
    std::memcpy(&bits, &f, 4);
    bits = (bits + 0x7FFFu + (bits >> 16 & 1u)) & 0xFFFF0000u;
    float r;
    std::memcpy(&r, &bits, 4);
    return static_cast<double>(r);
}

// Normal numbers rounded to bf16.
inline std::vector<double> normal(std::size_t n, std::mt19937_64& random) {
    std::normal_distribution<double> draw;
    std::vector<double> x(n);
    for (double& e : x) e = rounded(draw(random));
    return x;
}

// Normal numbers that fp32 holds exactly.
inline std::vector<double> normal_fp32(std::size_t n, std::mt19937_64& random) {
    std::normal_distribution<double> draw;
    std::vector<double> x(n);
    for (double& e : x) e = static_cast<double>(static_cast<float>(draw(random)));
    return x;
}

// Puts NaN into the rows that hold no data.
inline void kill_dead(std::vector<double>& x, const sdepth::batch_rows& rows, int width) {
    for (int b = 0; b < rows.batch; ++b)
        for (long long i = (rows.first(b) + rows.each.of(b)) * width; i < rows.first(b + 1) * width; ++i)
            x[static_cast<std::size_t>(i)] = nan;
}

inline std::size_t count(int batch, int rows, int stride) {
    return static_cast<std::size_t>(batch) * static_cast<std::size_t>(rows) * static_cast<std::size_t>(stride);
}

// Root mean square error over that of the reference, largest error over the largest reference; references below .001
// count as .001, since exact zeros (a softmax of one key has no slope) meet fp32 sums. NaN must sit in the same places
// (gaps between rows); equal infinities are no error.
struct error_size {
    double rms, max;
};
inline error_size compare(const std::vector<double>& got, const std::vector<double>& want) {
    double square = 0, norm = 0, worst = 0, most = 1e-3;
    for (std::size_t i = 0; i < want.size(); ++i) {
        if (std::isnan(want[i]) != std::isnan(got[i])) return {nan, nan};
        if (std::isnan(want[i]) || want[i] == got[i]) continue;
        const double e = std::abs(got[i] - want[i]);
        square += e * e, worst = std::max(worst, e);
    }
    for (const double w : want)
        if (std::isfinite(w)) norm += w * w, most = std::max(most, std::abs(w));
    return {std::sqrt(square / (norm + 1e-6 * static_cast<double>(want.size()))), worst / most};
}

/// How a number may differ from the oracle's, by what happened to it. Every bound follows from the storage type.
struct roundings {
    double unit;       ///< relative error of one rounding: 2^-8 for bfloat16 (8 bits), 2^-24 for fp32
    double own = 1;    ///< roundings of the number itself
    double mixed = 0;  ///< roundings of numbers of the same array that entered it
    double terms = 1;  ///< of the largest sum in fp32 behind it,
    double steps = 8;  ///< and further fp32 operations
};
inline constexpr roundings in_bf16{0x1p-8}, in_fp32{0x1p-24};

/// Each number within its bound: own roundings of itself, mixed ones of the largest, fp32 sums by
/// support/tolerance.hpp.
inline void check_rounded(const char* what, const std::vector<double>& got, const std::vector<double>& want,
                          const roundings& by) {
    double most = 0, square = 0, worst = 0;
    std::size_t numbers = 0, at = 0;
    for (const double w : want)
        if (!std::isnan(w)) most = std::max(most, std::abs(w)), square += w * w, ++numbers;
    const double rms = numbers > 0 ? std::sqrt(square / static_cast<double>(numbers)) : 0;
    const double slack = by.unit * by.mixed * most + tolerance<float>(by.terms, by.steps) * rms;
    bool places = got.size() == want.size();
    for (std::size_t i = 0; places && i < want.size(); ++i) {
        places = std::isnan(got[i]) == std::isnan(want[i]);
        if (std::isnan(want[i]) || got[i] == want[i]) continue;
        const double over = std::abs(got[i] - want[i]) / (by.unit * by.own * std::abs(want[i]) + slack);
        if (!(over <= worst)) worst = over, at = i;
    }
    INFO(what << ": " << worst << " of the bound at " << at << ", NaN in the same places: " << places);
    if (worst > 0) INFO("got " << got[at] << ", wanted " << want[at]);
    CHECK((places && worst <= 1));
}

inline bool same_bits(const std::vector<double>& x, const std::vector<double>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(double)) == 0;
}

}  // namespace sdepth_test
