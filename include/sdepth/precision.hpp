// SPDX-License-Identifier: MIT
// Storage types of a backend. Rank 0.
#pragma once

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

/// The number types that a backend stores. Operations are templates of such a set.
template <class Weight, class Gradient, class Activation, class Sum>
struct precision {
    using weight = Weight;          ///< weights as the products read them
    using gradient = Gradient;      ///< gradients of weights
    using activation = Activation;  ///< rows and their gradients
    using sum = Sum;                ///< statistics, logits of routers, log-sum-exps, losses
};

/// One type for everything: the host backends.
template <class T>
using uniform_precision = precision<T, T, T, T>;

}  // namespace sdepth::inline v0
