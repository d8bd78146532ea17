// SPDX-License-Identifier: MIT
// A random micro-batch with documents and padding. No Catch2 here.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sdepth/pipeline.hpp"
#include "sdepth/random.hpp"

namespace sdepth_test {

/// Sizes of a model and its run.
struct batch_sizes {
    std::size_t batch = 0, seq = 0, vocab = 0;

    template <class M, sdepth::Run R>
    static batch_sizes of() {
        return {static_cast<std::size_t>(R.batch), static_cast<std::size_t>(R.seq),
                static_cast<std::size_t>(M::dims.vocab)};
    }
};

/// A packed batch has three documents a sequence, and every sequence but the first is padded.
struct random_batch {
    std::vector<int> tokens, targets, documents, live;
    sdepth::step_totals totals;

    random_batch(const batch_sizes& sizes, std::uint64_t seed, bool packed) {
        const std::size_t rows = sizes.batch * sizes.seq, seq = sizes.seq;
        tokens.resize(rows);
        targets.assign(rows, -1);
        documents.assign(rows, 0);
        live.assign(sizes.batch, static_cast<int>(seq));
        for (std::size_t i = 0; i < rows; ++i) {
            const double u = sdepth::random_uniform(seed, sdepth::random_use::check, 0, i);
            tokens[i] = static_cast<int>(u * static_cast<double>(sizes.vocab));
        }
        for (std::size_t b = 0; b < sizes.batch; ++b) {
            if (packed) {
                live[b] = static_cast<int>(seq - b);  // the last sequences are padded
                for (std::size_t i = 0; i < seq; ++i) {
                    documents[b * seq + i] = static_cast<int>(i >= seq / 3) + static_cast<int>(i >= seq - 4);
                }
            }
            const auto real = static_cast<std::size_t>(live[b]);
            for (std::size_t i = 0; i + 1 < real; ++i) targets[b * seq + i] = tokens[b * seq + i + 1];
            totals.targets += static_cast<long long>(real) - 1;
            totals.rows += static_cast<long long>(real);
        }
    }
    template <class M, sdepth::Run R>
    static random_batch of(std::uint64_t seed, bool packed) {
        return {batch_sizes::of<M, R>(), seed, packed};
    }
    sdepth::batch_view view(bool packed) const {
        return {tokens.data(), targets.data(), packed ? documents.data() : nullptr, packed ? live.data() : nullptr};
    }
};

}  // namespace sdepth_test
