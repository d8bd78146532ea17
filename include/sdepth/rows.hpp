// SPDX-License-Identifier: MIT
// Row counts that may be known only on the device, and which depth slots a row sees. Sizes of tensors live elsewhere.
// Rank 0.
#pragma once

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

/// Rows of a tensor in each sequence of a batch: `capacity` rows of memory, of which the first `live[b]` hold data in
/// sequence b. `live` is null where every row does. Dead rows (at or after `live[b]`) of inputs are never used; of
/// outputs they read as the operation says.
struct rows {
    int capacity = 0;
    const int* live = nullptr;  // [B], in the backend's memory

    /// Rows of sequence b that hold data; at most `capacity`.
    SDEPTH_HOST_DEVICE constexpr int of(int b) const {
        if (live == nullptr) return capacity;
        const int n = live[b];
        return n < 0 ? 0 : n < capacity ? n : capacity;
    }
};

/// The rows of a batch: sequence b owns the rows b * capacity ... of memory.
struct batch_rows {
    int batch = 1;  // B
    rows each;

    /// Rows of memory.
    SDEPTH_HOST_DEVICE constexpr long long capacity() const { return static_cast<long long>(batch) * each.capacity; }
    /// First row of sequence b.
    SDEPTH_HOST_DEVICE constexpr long long first(int b) const { return static_cast<long long>(b) * each.capacity; }
};

/// Slots of every token that one layer sees: at most two stretches of neighbours.
struct slot_ranges {
    int begin[2] = {0, 0}, end[2] = {0, 0};

    SDEPTH_HOST_DEVICE constexpr int size(int i) const { return end[i] - begin[i]; }
    SDEPTH_HOST_DEVICE constexpr bool empty() const { return size(0) + size(1) == 0; }
};

}  // namespace sdepth::inline v0
