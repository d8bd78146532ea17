// SPDX-License-Identifier: MIT
// bfloat16 for host code: storage and the two conversions. GPU code uses the CUDA type, which has the same bits. Rank
// 0.
#pragma once

#include <bit>
#include <cstdint>

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

/// The upper half of an IEEE binary32. Arithmetic is done in float: convert, compute, convert back.
struct bfloat16 {
    std::uint16_t bits = 0;

    constexpr bfloat16() = default;

    /// Rounds to nearest, ties to even. Every NaN becomes 0x7fff, as CUDA's conversion does.
    constexpr explicit bfloat16(float x) {
        const auto wide = std::bit_cast<std::uint32_t>(x);
        const std::uint32_t rounded = wide + 0x7fffu + ((wide >> 16) & 1u);
        bits = (wide & 0x7fffffffu) > 0x7f800000u ? std::uint16_t{0x7fff} : static_cast<std::uint16_t>(rounded >> 16);
    }

    /// Exact.
    constexpr explicit operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

}  // namespace sdepth::inline v0
