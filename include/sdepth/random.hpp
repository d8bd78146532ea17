// SPDX-License-Identifier: MIT
// Counter-based random numbers: a value is a pure function of (seed, use, stream, element), the same on host and GPU.
// No generator object and no state: nothing to save, nothing that depends on ranks, threads or launches. Rank 0.
#pragma once

#include <math.h>

#include <cstdint>

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

/// What random numbers are drawn for. Each use has its own space of streams, so that no two uses share a number.
enum class random_use : std::uint32_t {
    weights = 0,   ///< stream = index of the tensor, element = index of the number in the logical tensor
    order = 1,     ///< stream = epoch of the data
    sampling = 2,  ///< stream = index of the generated text, element = position
    routing = 3,   ///< stream = layer, element = token
    check = 4,     ///< inputs of tests and benchmarks
};

/// Four 32-bit words: a counter before the rounds, random bits after them.
struct philox_words {
    std::uint32_t word[4];
};

/// Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3; SC 2011).
/// Bit-equal to Random123's `philox4x32`, ten rounds, with `key_low`, `key_high` as its two key words.
SDEPTH_HOST_DEVICE constexpr philox_words philox4x32(philox_words counter, std::uint32_t key_low,
                                                     std::uint32_t key_high) {
    for (int round = 0; round < 10; ++round) {
        const std::uint64_t even = std::uint64_t{0xD2511F53u} * counter.word[0];
        const std::uint64_t odd = std::uint64_t{0xCD9E8D57u} * counter.word[2];
        counter = {{static_cast<std::uint32_t>(odd >> 32) ^ counter.word[1] ^ key_low, static_cast<std::uint32_t>(odd),
                    static_cast<std::uint32_t>(even >> 32) ^ counter.word[3] ^ key_high,
                    static_cast<std::uint32_t>(even)}};
        key_low += 0x9E3779B9u;
        key_high += 0xBB67AE85u;
    }
    return counter;
}

/// The four random words of `block`. The words of block n belong to the elements 4n ... 4n + 3.
SDEPTH_HOST_DEVICE constexpr philox_words random_words(std::uint64_t seed, random_use use, std::uint32_t stream,
                                                       std::uint64_t block) {
    return philox4x32({{static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), stream,
                        static_cast<std::uint32_t>(use)}},
                      static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> 32));
}

/// The random word of one element: word `element % 4` of its block.
SDEPTH_HOST_DEVICE constexpr std::uint32_t random_word(std::uint64_t seed, random_use use, std::uint32_t stream,
                                                       std::uint64_t element) {
    const philox_words w = random_words(seed, use, stream, element / 4);
    // Not w.word[element % 4]: an index known only at run time puts the array into a GPU's local memory.
    return element & 2 ? (element & 1 ? w.word[3] : w.word[2]) : (element & 1 ? w.word[1] : w.word[0]);
}

/// A uniform number of the open interval (0, 1), from the 2^32 midpoints of equal steps; exact in double.
SDEPTH_HOST_DEVICE constexpr double random_uniform(std::uint64_t seed, random_use use, std::uint32_t stream,
                                                   std::uint64_t element) {
    return (random_word(seed, use, stream, element) + 0.5) * 0x1p-32;
}

namespace detail {

// The two functions below use only operations that IEEE 754 rounds exactly, and every product that feeds a sum is an
// explicit fma: compilers may contract the rest as they like and still give the same bits on host and GPU.

/// -2 log((word + 1/2) / 2^32), absolute error below 1e-15 times the result's size.
SDEPTH_HOST_DEVICE inline double minus_two_log(std::uint32_t word) {
    std::uint64_t odd = 2 * std::uint64_t{word} + 1;  // the argument is odd / 2^33
    int exponent = 0;
    while (odd < (std::uint64_t{1} << 32)) {
        odd <<= 1;
        --exponent;
    }
    double f = static_cast<double>(odd) * 0x1p-33;  // [1/2, 1), times 2^exponent
    if (f < 0.70710678118654752) {
        f *= 2;
        --exponent;
    }
    const double s = (f - 1) / (f + 1);  // log f = 2 artanh s, |s| < .172
    const double z = s * s;
    double series = 1.0 / 23;
    for (int k = 21; k >= 1; k -= 2) series = ::fma(series, z, 1.0 / k);
    return -2 * ::fma(static_cast<double>(exponent), 0.69314718055994531, 2 * s * series);
}

/// Cosine and sine of 2 pi (word + 1/2) / 2^32, absolute error below 1e-15.
struct plane_point {
    double x, y;
};
SDEPTH_HOST_DEVICE inline plane_point point_on_circle(std::uint32_t word) {
    const std::uint32_t quarter = word >> 30;
    std::uint64_t odd = 2 * std::uint64_t{word & 0x3FFFFFFFu} + 1;  // the angle in its quarter is odd / 2^33 turns
    const bool swapped = odd > (std::uint64_t{1} << 30);            // fold the upper eighth onto the lower one
    if (swapped) odd = (std::uint64_t{1} << 31) - odd;
    const double x = static_cast<double>(odd) * (6.28318530717958648 * 0x1p-33);  // (0, pi/4]
    const double z = x * x;
    double sine = 1, cosine = 1;  // Taylor: x (1 - z/(2*3) (1 - z/(4*5) ...)), 1 - z/(1*2) (1 - z/(3*4) ...)
    for (int k = 18; k >= 2; k -= 2) {
        sine = ::fma(-z / (k * (k + 1)), sine, 1.0);
        cosine = ::fma(-z / (k * (k - 1)), cosine, 1.0);
    }
    sine *= x;
    const double a = swapped ? sine : cosine;
    const double b = swapped ? cosine : sine;
    switch (quarter) {
        case 0:
            return {a, b};
        case 1:
            return {-b, a};
        case 2:
            return {-a, -b};
        default:
            return {b, -a};
    }
}

/// Two independent standard normal numbers from two random words (Box, Muller 1958).
SDEPTH_HOST_DEVICE inline plane_point normal_pair(std::uint32_t radius, std::uint32_t angle) {
    const double r = ::sqrt(minus_two_log(radius));
    const plane_point p = point_on_circle(angle);
    return {r * p.x, r * p.y};
}

}  // namespace detail

/// Four standard normal numbers (mean 0, variance 1; |x| < 6.8) that belong to the elements 4 * block ... + 3.
struct four_normals {
    double value[4];
};

/// The normal numbers of one block of elements; bit-equal on host and GPU.
SDEPTH_HOST_DEVICE inline four_normals random_normals(std::uint64_t seed, random_use use, std::uint32_t stream,
                                                      std::uint64_t block) {
    const philox_words w = random_words(seed, use, stream, block);
    const detail::plane_point a = detail::normal_pair(w.word[0], w.word[1]);
    const detail::plane_point b = detail::normal_pair(w.word[2], w.word[3]);
    return {{a.x, a.y, b.x, b.y}};
}

/// The normal number of one element; the same as `random_normals(..., element / 4).value[element % 4]`.
SDEPTH_HOST_DEVICE inline double random_normal(std::uint64_t seed, random_use use, std::uint32_t stream,
                                               std::uint64_t element) {
    const philox_words w = random_words(seed, use, stream, element / 4);
    const bool second = (element & 2) != 0;
    const detail::plane_point pair =
        detail::normal_pair(second ? w.word[2] : w.word[0], second ? w.word[3] : w.word[1]);
    return element & 1 ? pair.y : pair.x;
}

}  // namespace sdepth::inline v0
