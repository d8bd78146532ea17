// SPDX-License-Identifier: MIT
// What an expert layer's router did over some batches: loads, drops, entropy. Rank 1.
#pragma once

#include <cstddef>
#include <vector>

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

/// Choices of one expert layer over some batches.
struct expert_load {
    long long layer = 0;          ///< number in the formula, from 0
    long long rows = 0;           ///< rows that were routed; padding and rows that the layer skips are not
    std::vector<long long> load;  ///< choices of each expert, before any limit
    long long dropped = 0;        ///< choices beyond a capacity that nobody executed
    long long moved = 0;          ///< choices beyond a capacity that were rerouted or deferred
    double entropy = 0;           ///< of the router's distribution, mean over rows, nats

    /// Largest load over the mean: 1 is even, E means collapse.
    double imbalance() const {
        long long most = 0, all = 0;
        for (const long long n : load) all += n, most = n > most ? n : most;
        return all == 0 ? 0 : static_cast<double>(most) * static_cast<double>(load.size()) / static_cast<double>(all);
    }
    /// Largest imbalance of several layers; 0 without any.
    static double worst_imbalance(const std::vector<expert_load>& layers) {
        double worst = 0;
        for (const expert_load& layer : layers) worst = layer.imbalance() > worst ? layer.imbalance() : worst;
        return worst;
    }
    /// Share of all choices of several layers that were dropped.
    static double dropped_share(const std::vector<expert_load>& layers) {
        long long all = 0, lost = 0;
        for (const expert_load& layer : layers) {
            for (const long long n : layer.load) all += n;
            lost += layer.dropped;
        }
        return all == 0 ? 0 : static_cast<double>(lost) / static_cast<double>(all);
    }
    /// Adds the same layer's choices over other batches.
    void add(const expert_load& other) {
        const auto mine = static_cast<double>(rows), theirs = static_cast<double>(other.rows);
        if (rows + other.rows > 0) entropy = (entropy * mine + other.entropy * theirs) / (mine + theirs);
        rows += other.rows;
        load.resize(other.load.size());
        for (std::size_t e = 0; e < load.size(); ++e) load[e] += other.load[e];
        dropped += other.dropped;
        moved += other.moved;
    }
};

}  // namespace sdepth::inline v0
