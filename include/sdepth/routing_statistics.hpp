// SPDX-License-Identifier: MIT
// What sparse layers do with their tokens: realised rate, coverage, overlap of neighbours, updates a token, agreement
// of the training mask with the causal one. Rank 7.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sdepth/inert.hpp"
#include "sdepth/model.hpp"
#include "sdepth/passes/layer_kind.hpp"
#include "sdepth/routing_reference.hpp"

namespace sdepth::inline v0 {

namespace detail {

struct inert_routing {
    inert_number sparsity, layers;
    constexpr inert_real share() const { return {}; }
    constexpr inert_real coverage() const { return {}; }
    constexpr inert_real jaccard() const { return {}; }
    constexpr inert_real updates(long long) const { return {}; }
    constexpr operator independent_routing() const { return {}; }  // NOLINT(google-explicit-constructor)
};

template <class M>
constexpr independent_routing longest_sparse_run() {
    independent_routing longest;
    for (const layer_run& r : M::runs) {
        visit_type(typename M::kinds{}, r.kind, [&]<class L>(std::type_identity<L>) {
            if (layer_pass<L>::is_sparse && r.times > longest.layers) longest = {layer_pass<L>::sparsity, r.times};
        });
    }
    return longest;
}

/// Sparsity of a layer, by its number from 0.
template <class M>
constexpr long long sparsity_of(long long layer) {
    long long sparsity = 1;
    for (const layer_run& r : M::runs) {
        if (layer < r.first || layer >= r.first + r.times) continue;
        visit_type(typename M::kinds{}, r.kind,
                   [&]<class L>(std::type_identity<L>) { sparsity = layer_pass<L>::sparsity; });
    }
    return sparsity;
}

}  // namespace detail

/// What independent choices of the same rate would show on the longest run of sparse layers of model M.
template <class M>
constexpr auto independent_reference() {
    return detail::unless_broken<M, detail::inert_routing>(
        []<class Good>(std::type_identity<Good>) { return detail::longest_sparse_run<Good>(); });
}

/// Means over everything observed.
struct route_report {
    double rate = 0;                    ///< executed rows over real rows, all sparse layers
    double agreement = 0;               ///< share of rows on which the executed mask and the causal rule decide alike
    double coverage = 0;                ///< share of a stretch's rows that some layer of it executed
    double jaccard = 0;                 ///< |A and B| / |A or B| of neighbouring layers, where they are not both empty
    std::vector<double> updates;        ///< share of rows executed 0, 1, 2, ... times in a stretch
    std::vector<double> rate_of_layer;  ///< by sparse layer, in order
};

/// Collects masks layer by layer; a stretch is a sequence of sparse layers that follow each other directly.
class route_observer {
  public:
    /// @param layer   number of the layer in the formula
    /// @param sparsity  its K
    /// @param ids, live  chosen rows, [B, capacity] and [B]
    /// @param logits  u of every row, [B, L]; the causal rule takes u >= 0, with K = 1 every row
    /// @param rows    real rows of each sequence, [B]
    template <class Number>
    void observe(long long layer, long long sparsity, int batch, int seq, int capacity, const int* ids, const int* live,
                 const Number* logits, const int* rows) {
        if (layer != last_layer_ + 1) close_stretch();
        std::vector<char> mask(static_cast<std::size_t>(batch * seq), 0);
        std::int64_t chosen = 0, real = 0, alike = 0;
        for (int b = 0; b < batch; ++b) {
            for (int j = 0; j < live[b]; ++j) mask[static_cast<std::size_t>(b * seq + ids[b * capacity + j])] = 1;
            chosen += live[b];
            real += rows[b];
            for (int i = b * seq; i < b * seq + rows[b]; ++i) {
                alike += (sparsity == 1 || logits[i] >= 0) == (mask[static_cast<std::size_t>(i)] != 0) ? 1 : 0;
            }
        }
        if (times_.empty()) {
            times_.assign(mask.size(), 0);
            real_.assign(mask.size(), 0);
            for (int b = 0; b < batch; ++b) {
                for (int i = b * seq; i < b * seq + rows[b]; ++i) real_[static_cast<std::size_t>(i)] = 1;
            }
        } else {
            compare(mask, batch, seq);
        }
        for (std::size_t i = 0; i < mask.size(); ++i) times_[i] += mask[i];
        previous_ = std::move(mask);
        last_layer_ = layer;
        count_layer(layer, chosen, real, alike);
    }

    /// Ends a batch: the next layer starts a new stretch.
    void end_batch() {
        close_stretch();
        last_layer_ = -2;
    }

    route_report report() {
        close_stretch();
        route_report out;
        out.rate = share(chosen_, decisions_);
        out.agreement = share(alike_, decisions_);
        out.coverage = share(covered_, stretch_rows_);
        out.jaccard = pairs_ == 0 ? 0 : jaccard_ / static_cast<double>(pairs_);
        for (const std::int64_t n : histogram_) out.updates.push_back(share(n, stretch_rows_));
        for (const auto& layer : layers_) out.rate_of_layer.push_back(share(layer.chosen, layer.real));
        return out;
    }

  private:
    struct layer_sum {
        long long layer;
        std::int64_t chosen, real;
    };

    static double share(std::int64_t part, std::int64_t whole) {
        return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
    }
    void compare(const std::vector<char>& mask, int batch, int seq) {
        for (int b = 0; b < batch; ++b) {
            std::int64_t both = 0, either = 0;
            for (std::size_t i = static_cast<std::size_t>(b * seq); i < static_cast<std::size_t>((b + 1) * seq); ++i) {
                both += mask[i] != 0 && previous_[i] != 0 ? 1 : 0;
                either += mask[i] != 0 || previous_[i] != 0 ? 1 : 0;
            }
            if (either == 0) continue;
            jaccard_ += share(both, either);
            ++pairs_;
        }
    }
    void count_layer(long long layer, std::int64_t chosen, std::int64_t real, std::int64_t alike) {
        chosen_ += chosen;
        decisions_ += real;
        alike_ += alike;
        for (layer_sum& sum : layers_) {
            if (sum.layer != layer) continue;
            sum.chosen += chosen;
            sum.real += real;
            return;
        }
        layers_.push_back({layer, chosen, real});
    }
    void close_stretch() {
        for (std::size_t i = 0; i < times_.size(); ++i) {
            if (real_[i] == 0) continue;
            const auto n = static_cast<std::size_t>(times_[i]);
            if (histogram_.size() <= n) histogram_.resize(n + 1, 0);
            ++histogram_[n];
            ++stretch_rows_;
            covered_ += n > 0 ? 1 : 0;
        }
        times_.clear();
    }

    long long last_layer_ = -2;
    std::vector<char> previous_, real_;
    std::vector<int> times_;
    std::vector<std::int64_t> histogram_;
    std::vector<layer_sum> layers_;
    std::int64_t chosen_ = 0, decisions_ = 0, alike_ = 0, covered_ = 0, stretch_rows_ = 0, pairs_ = 0;
    double jaccard_ = 0;
};

}  // namespace sdepth::inline v0
