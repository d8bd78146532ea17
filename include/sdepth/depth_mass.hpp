// SPDX-License-Identifier: MIT
// Which share of a layer's attention goes to depth slots. Rank 1.
#pragma once

#include <cstddef>
#include <utility>
#include <vector>

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

/// Sums over the rows that one layer executed in some batches, from which its shares follow.
struct depth_mass {
    long long layer = 0;  ///< number in the formula, from 0

    depth_mass() = default;
    /// @param sums  as DepthMassArgs leaves them: one number a query head, the same for even logits, rows
    depth_mass(long long number, std::vector<double> sums) : layer(number), sums_(std::move(sums)) {}

    std::size_t heads() const { return sums_.size() - 2; }
    /// Mean share of query head `head`.
    double share(std::size_t head) const { return mean(sums_[head]); }
    /// Mean share over all heads.
    double share() const {
        double all = 0;
        for (std::size_t head = 0; head < heads(); ++head) all += share(head);
        return all / static_cast<double>(heads());
    }
    /// What it would be if all logits were equal: slots / (slots + keys).
    double share_if_even() const { return mean(sums_[heads()]); }
    /// Adds the same layer's sums over other batches.
    void add(const depth_mass& other) {
        layer = other.layer;
        sums_.resize(other.sums_.size());
        for (std::size_t i = 0; i < sums_.size(); ++i) sums_[i] += other.sums_[i];
    }

  private:
    double mean(double sum) const { return sums_.back() > 0 ? sum / sums_.back() : 0; }

    std::vector<double> sums_;
};

}  // namespace sdepth::inline v0
