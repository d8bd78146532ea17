// SPDX-License-Identifier: MIT
// Storage types of a backend. Rank 0.
#pragma once

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

/// The number types that a backend stores. Operations are templates of such a set.
///
/// Matrices that products read have a copy in `weight`. Everything else, that is vectors, scalars and routers, is read
/// in `master`, straight from the numbers that the optimiser changes. Where the two types agree there is one copy.
template <class Weight, class Master, class Gradient, class Activation, class Sum>
struct precision {
    using weight = Weight;          ///< matrices as the products read them
    using master = Master;          ///< parameters as the optimiser changes them and files hold them
    using gradient = Gradient;      ///< gradients of weights
    using activation = Activation;  ///< rows and their gradients
    using sum = Sum;                ///< statistics, logits of routers, log-sum-exps, losses
};

/// One type for everything: the host backends.
template <class T>
using uniform_precision = precision<T, T, T, T, T>;

}  // namespace sdepth::inline v0
