// SPDX-License-Identifier: MIT
// Arguments of the first values of a tensor. Rank 5.
#pragma once

#include <cstdint>

#include "sdepth/initialise.hpp"

namespace sdepth::inline v0 {

/// Element i becomes initial_value(start, seed, stream, i, cols), see there; fp64 rounded to the master type.
template <class P>
struct InitialArgs {
    long long elements = 0;
    long long cols = 0;  // of a row; 0 = a vector
    initial start{};
    std::uint64_t seed = 0;
    std::uint32_t stream = 0;              // of the tensor
    typename P::master* master = nullptr;  // [elements]
    typename P::weight* weight = nullptr;  // its rounded copy, written as well; null where there is none
};

}  // namespace sdepth::inline v0
