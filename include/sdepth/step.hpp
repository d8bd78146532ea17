// SPDX-License-Identifier: MIT
// What one optimiser step is given: micro-batches and the settings of the update. Rank 6.
#pragma once

#include <cstdint>

#include "sdepth/dims.hpp"

namespace sdepth::inline v0 {

/// One micro-batch in host memory; `documents` and `live` may be null (one document a sequence, no padding).
struct batch_view {
    const int* tokens = nullptr;     ///< [B, L]
    const int* targets = nullptr;    ///< [B, L], negative = no loss
    const int* documents = nullptr;  ///< [B, L]
    const int* live = nullptr;       ///< [B], real tokens
    std::uint64_t seed = 0;          ///< noisy routers: key of the noise,
    std::uint64_t first = 0;         ///< and number of the batch's first token in the run
};

/// One update of the weights.
struct update_settings {
    optimiser kind = optimiser::adamw;
    double rate = 1e-3;
    double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8;
    double momentum = 0.95;   ///< Muon
    double muon_match = 0.2;  ///< Muon: root mean square of an update over the rate
    double decay = 0.1;
    double clip = 1;     ///< largest norm of all gradients together; 0 = no clipping
    long long step = 1;  ///< counted from 1

    friend bool operator==(const update_settings&, const update_settings&) = default;
};

}  // namespace sdepth::inline v0
