// SPDX-License-Identifier: MIT
// A fast 64-bit digest of numbers, to tell damage and mix-ups, not forgery: sha256.hpp is for that. Rank 0.
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <string>

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

/// Takes numbers of 32 or 64 bits in order. Each step is a bijection of what was before, so no change of one number
/// goes unseen; of other changes, one in 2^64 does.
class word_digest {
  public:
    void add(std::uint64_t word) {
        state_ = (state_ ^ word) * 0x9e3779b97f4a7c15;
        state_ ^= state_ >> 32;
    }
    template <class T>
    void add(std::span<const T> numbers) {
        static_assert(sizeof(T) == 4 || sizeof(T) == 8);
        for (const T& number : numbers) {
            if constexpr (sizeof(T) == 4)
                add(std::uint64_t{std::bit_cast<std::uint32_t>(number)});
            else
                add(std::bit_cast<std::uint64_t>(number));
        }
    }
    std::uint64_t value() const { return state_; }

    /// 16 hexadecimal digits.
    std::string hex() const {
        std::string text;
        for (int shift = 60; shift >= 0; shift -= 4) text += "0123456789abcdef"[state_ >> shift & 15];
        return text;
    }

  private:
    std::uint64_t state_ = 0x6a09e667f3bcc909;
};

}  // namespace sdepth::inline v0
