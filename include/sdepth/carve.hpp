// SPDX-License-Identifier: MIT
// Handing out pieces of one allocation. The same code that assigns pointers at run time counts bytes at compile time,
// so that a plan's size and the memory really used cannot differ. Rank 4.
#pragma once

#include <cstddef>

#include "sdepth/numbers.hpp"

namespace sdepth::inline v0 {

/// Every piece starts at a multiple of this many bytes.
inline constexpr long long carve_alignment = 256;

/// Cuts pieces off a region, one after another. Without a base it only counts.
class carver {
  public:
    constexpr carver() = default;
    explicit carver(void* base) : base_(static_cast<std::byte*>(base)) {}

    /// Points `piece` at room for `elements` numbers.
    template <class T>
    constexpr void operator()(T*& piece, long long elements) {
        piece = nullptr;
        if (base_ != nullptr) piece = reinterpret_cast<T*>(base_ + used_.value());
        const count bytes = count(elements) * count(static_cast<long long>(sizeof(T)));
        used_ += count(ceil_div(bytes.value(), carve_alignment)) * count(carve_alignment);
    }
    constexpr long long bytes() const { return used_.value(); }

  private:
    std::byte* base_ = nullptr;
    count used_;
};

}  // namespace sdepth::inline v0
