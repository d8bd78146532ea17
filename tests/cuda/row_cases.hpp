// SPDX-License-Identifier: MIT
// Batches for sweeps over rows: full, with dead rows, with none alive. No CUDA here.
#pragma once

#include <vector>

#include "numbers.hpp"
#include "sdepth/rows.hpp"

namespace sdepth_test {

struct row_case {
    int batch, capacity;
    std::vector<int> live;

    sdepth::batch_rows rows() const { return {batch, {capacity, live.empty() ? nullptr : live.data()}}; }
    std::size_t numbers(int width) const { return count(batch, capacity, width); }
    /// Normal numbers that bfloat16 holds, NaN in dead rows.
    std::vector<double> draw(int width, std::mt19937_64& random) const {
        std::vector<double> x = normal(numbers(width), random);
        kill_dead(x, rows(), width);
        return x;
    }
};

inline std::vector<row_case> row_cases() {
    return {{1, 1, {}}, {1, 3000, {}}, {3, 50, {50, 0, 17}}, {2, 4, {0, 0}}, {2, 77, {}}, {4, 33, {1, 40, -1, 32}}};
}
/// For the sanitizers, which are slow.
inline std::vector<row_case> small_row_cases() { return {{1, 3, {}}, {3, 20, {20, 0, 7}}}; }

}  // namespace sdepth_test
