// SPDX-License-Identifier: MIT
// An assertion on a count that shows both numbers. Rank 0.
#pragma once

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

/// `static_assert(counted<params<M>.total, 5>())`: on failure every compiler prints both numbers.
template <auto got, auto want>
constexpr bool counted() {
    static_assert(got == want, "sdepth: counted (first number) differs from expected (second number)");
    return true;  // or a failure would count twice
}

}  // namespace sdepth::inline v0
