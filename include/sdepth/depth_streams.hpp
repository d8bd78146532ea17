// SPDX-License-Identifier: MIT
// Three ways for a layer to get at what earlier layers made of its position, to hold Mixture-of-Depths Attention
// against (arXiv 2603.15619, section 2.2 and Fig. 3): what a layer reads, and what it writes. Plain loops over one
// position, for no stream mixes positions; nothing here trains. Rank 1.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "sdepth/error.hpp"
#include "sdepth/numbers.hpp"

namespace sdepth::inline v0 {

/// Sizes of a stack with a depth stream; the query heads divide the width and the KV heads the query heads.
struct stream_sizes {
    int layers = 1;    // L
    int width = 1;     // D
    int heads = 1;     // H
    int kv_heads = 1;  // H / G
};

/// What a stream costs beside the layers' own work: parameters, numbers that decoding keeps of one position, and FLOPs
/// of one position (Table 1). Prefill takes the last two for every position.
struct stream_cost {
    count parameters, cache, flops;
};

namespace detail {

// Product of w, [outputs, x.size()] by rows, with x.
inline std::vector<double> stream_product(const std::vector<double>& w, const std::vector<double>& x) {
    if (x.empty() || w.size() % x.size() != 0)
        throw error("depth stream: a matrix of " + std::to_string(w.size()) + " numbers does not fit a state of " +
                    std::to_string(x.size()) + "; give as many columns as the state has numbers");
    std::vector<double> y(w.size() / x.size(), 0);
    for (std::size_t o = 0; o < y.size(); ++o)
        for (std::size_t i = 0; i < x.size(); ++i) y[o] += w[o * x.size() + i] * x[i];
    return y;
}

// 1 + 2 + ... + n
constexpr count triangle(long long n) {
    return n % 2 == 0 ? count(n / 2) * count(n + 1) : count(n) * count((n + 1) / 2);
}

}  // namespace detail

/// Depth Residual (Eq. 3): a layer reads the running sum and adds its result to it.
class depth_residual {
  public:
    explicit depth_residual(std::vector<double> first) : x_(std::move(first)) {}

    const std::vector<double>& read() const { return x_; }
    void write(const std::vector<double>& f) {
        for (std::size_t c = 0; c < x_.size(); ++c) x_[c] += f[c];
    }
    static constexpr stream_cost cost(const stream_sizes& s) { return {0, s.width, 0}; }

  private:
    std::vector<double> x_;
};

/// Depth Dense (Eq. 4): a layer reads a linear map of all states so far, each in full width, and appends its result.
class depth_dense {
  public:
    explicit depth_dense(std::vector<double> first) : states_(std::move(first)) {}

    /// @param w  [D, l D], for the l states so far, first state first
    std::vector<double> read(const std::vector<double>& w) const { return detail::stream_product(w, states_); }
    void write(const std::vector<double>& f) { states_.insert(states_.end(), f.begin(), f.end()); }
    static constexpr stream_cost cost(const stream_sizes& s) {
        const count weights = count(s.width) * count(s.width) * detail::triangle(s.layers);
        return {weights, count(s.layers) * count(s.width), count(2) * weights};
    }

  private:
    std::vector<double> states_;
};

/// Depth Attention (Eq. 5 and 6): a layer reads by attention over the keys and values of all states so far, with the
/// query of the last one; it writes query, key and value of its result.
class depth_attention_stream {
  public:
    /// Projections of one write: [D, D], [D / G, D], [D / G, D].
    struct projections {
        std::vector<double> query, key, value;
    };

    depth_attention_stream(const stream_sizes& sizes, const std::vector<double>& first, const projections& w)
        : head_dim_(static_cast<std::size_t>(sizes.width / sizes.heads)),
          group_(static_cast<std::size_t>(sizes.heads / sizes.kv_heads)) {
        write(first, w);
    }

    std::vector<double> read() const {
        std::vector<double> out(query_.size(), 0), logits(keys_.size());
        for (std::size_t head = 0; head < query_.size() / head_dim_; ++head) {
            const std::size_t q = head * head_dim_, kv = head / group_ * head_dim_;
            for (std::size_t s = 0; s < keys_.size(); ++s) {
                logits[s] = 0;
                for (std::size_t c = 0; c < head_dim_; ++c) logits[s] += query_[q + c] * keys_[s][kv + c];
                logits[s] /= std::sqrt(static_cast<double>(head_dim_));
            }
            const double top = *std::max_element(logits.begin(), logits.end());
            double sum = 0;
            for (double& x : logits) sum += x = std::exp(x - top);
            for (std::size_t s = 0; s < keys_.size(); ++s)
                for (std::size_t c = 0; c < head_dim_; ++c) out[q + c] += logits[s] / sum * values_[s][kv + c];
        }
        return out;
    }
    void write(const std::vector<double>& f, const projections& w) {
        query_ = detail::stream_product(w.query, f);
        keys_.push_back(detail::stream_product(w.key, f));
        values_.push_back(detail::stream_product(w.value, f));
    }
    /// FLOPs of the attention; those of the projections are 2 x parameters.
    static constexpr stream_cost cost(const stream_sizes& s) {
        const count keys = count(s.width / s.heads * s.kv_heads);
        return {count(s.layers) * count(s.width) * (count(s.width) + count(2) * keys),
                count(s.layers) * count(2) * keys, count(4) * count(s.width) * detail::triangle(s.layers)};
    }

  private:
    std::size_t head_dim_, group_;
    std::vector<double> query_;                       // [D]
    std::vector<std::vector<double>> keys_, values_;  // [states][D / G]
};

}  // namespace sdepth::inline v0
