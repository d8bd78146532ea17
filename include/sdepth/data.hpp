// SPDX-License-Identifier: MIT
// Batches: which tokens a training step sees, as a pure function of the seed and the step, and one pass over held-out
// text. No state, so nothing to save; where the text comes from is corpus.hpp's business. Rank 7.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "sdepth/corpus.hpp"
#include "sdepth/error.hpp"
#include "sdepth/random.hpp"

namespace sdepth::inline v0 {

/// Member `i` of a random order of 0 ... count - 1: a bijection for each (seed, epoch), found without a table. A
/// Feistel network over the next even power of two, walked until it falls into the range (Black and Rogaway: Ciphers
/// with arbitrary finite domains, CT-RSA 2002); Philox is its round function.
constexpr std::uint64_t shuffled(std::uint64_t seed, std::uint64_t epoch, std::uint64_t count, std::uint64_t i) {
    const auto half = static_cast<unsigned>(std::max(1, (static_cast<int>(std::bit_width(count - 1)) + 1) / 2));
    const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
    do {
        std::uint64_t left = i >> half, right = i & mask;
        for (std::uint64_t round = 0; round < 8; ++round) {
            const philox_words random =
                random_words(seed, random_use::order, static_cast<std::uint32_t>(epoch), round << 32 | right);
            const std::uint64_t mixed = left ^ (random.word[0] & mask);
            left = right;
            right = mixed;
        }
        i = left << half | right;
    } while (i >= count);
    return i;
}

/// What the last token of a document has to predict: nothing, or the first token of the next document.
enum class document_end { silent, next };

/// How the tokens of a corpus are laid out in batches, on one of `ranks` devices.
struct batch_layout {
    int length = 0;         ///< tokens in a sequence (L)
    int sequences = 0;      ///< sequences in a batch (B), on this rank
    int micro_batches = 1;  ///< batches in a step, on this rank
    int rank = 0;
    int ranks = 1;
    document_end end = document_end::silent;

    /// Sequences that one step sees, on all ranks together.
    std::uint64_t sequences_per_step() const {
        return static_cast<std::uint64_t>(sequences) * static_cast<std::uint64_t>(micro_batches) *
               static_cast<std::uint64_t>(ranks);
    }
    /// Tokens that one step sees, on all ranks together.
    std::uint64_t tokens_per_step() const { return sequences_per_step() * static_cast<std::uint64_t>(length); }
};

/// B sequences of L tokens. Tokens after the end of the corpus are padding: token 0, target -1, document -1.
struct token_batch {
    int sequences = 0, length = 0;
    std::vector<int> tokens;         ///< [B, L]
    std::vector<int> targets;        ///< [B, L], the next token; -1 = nothing to predict
    std::vector<int> document;       ///< [B, L], number of the token's document in its sequence, from 0; -1 = padding
    std::vector<int> first;          ///< [B, L], row of the sequence in which that document begins; L = padding
    std::vector<int> live;           ///< [B], tokens that are no padding
    std::int64_t targets_count = 0;  ///< targets that are not -1: the denominator of the mean loss

    friend bool operator==(const token_batch&, const token_batch&) = default;
};

namespace detail {

inline void check_layout(const batch_layout& layout) {
    if (layout.length < 1 || layout.sequences < 1 || layout.micro_batches < 1 || layout.ranks < 1 || layout.rank < 0 ||
        layout.rank >= layout.ranks)
        throw error("batch of " + std::to_string(layout.sequences) + " x " + std::to_string(layout.length) +
                    " tokens, " + std::to_string(layout.micro_batches) + " micro-batches, rank " +
                    std::to_string(layout.rank) + " of " + std::to_string(layout.ranks) +
                    ": all must be at least 1 and the rank below the ranks");
}

inline void clear_batch(token_batch& batch, const batch_layout& layout) {
    batch.sequences = layout.sequences;
    batch.length = layout.length;
    const auto cells = static_cast<std::size_t>(layout.sequences) * static_cast<std::size_t>(layout.length);
    batch.tokens.assign(cells, 0);
    batch.targets.assign(cells, -1);
    batch.document.assign(cells, -1);
    batch.first.assign(cells, layout.length);
    batch.live.assign(static_cast<std::size_t>(layout.sequences), 0);
    batch.targets_count = 0;
}

/// Fills sequence `row` of a cleared batch with the window of the corpus that begins at `position`.
inline void fill_sequence(const corpus& text, std::uint64_t position, document_end end, token_batch& batch,
                          std::size_t row) {
    const auto length = static_cast<std::size_t>(batch.length);
    const std::uint64_t left = text.size() - position;
    const auto live = static_cast<std::size_t>(std::min<std::uint64_t>(left, length));
    const std::size_t cell = row * length;
    text.read(position, std::span(batch.tokens).subspan(cell, live));
    std::int32_t after = 0;  // the token that follows the window
    if (left > length) text.read(position + length, std::span(&after, 1));
    const auto starts = text.document_starts();
    auto next_start = std::upper_bound(starts.begin(), starts.end(), position);
    int document = 0, first = 0;
    for (std::size_t i = 0; i < live; ++i) {
        if (next_start != starts.end() && *next_start == position + i) {
            ++document;
            first = static_cast<int>(i);
            ++next_start;
        }
        batch.document[cell + i] = document;
        batch.first[cell + i] = first;
        const bool ends = next_start != starts.end() && *next_start == position + i + 1;
        if (i + 1 == left || (ends && end == document_end::silent)) continue;
        batch.targets[cell + i] = i + 1 < length ? batch.tokens[cell + i + 1] : after;
        ++batch.targets_count;
    }
    batch.live[row] = static_cast<int>(live);
}

}  // namespace detail

/// The batches of a training run. The corpus is cut into windows of `length` tokens, one after the other; the last
/// incomplete one is left out. Every epoch visits each window once, in its own random order. Sequence g of the run,
/// counted over steps, micro-batches, ranks and rows in this order, depends on (seed, g) alone: a run may stop
/// anywhere, and the sequences of a step are the same however they are spread over micro-batches and ranks.
class training_batches {
  public:
    training_batches(corpus text, const batch_layout& layout, std::uint64_t seed)
        : text_(std::move(text)), layout_(layout), seed_(seed) {
        detail::check_layout(layout);
        windows_ = text_.size() / static_cast<std::uint64_t>(layout.length);
        if (windows_ == 0)
            throw error("the training text has " + std::to_string(text_.size()) +
                        " tokens, fewer than one sequence of " + std::to_string(layout.length) +
                        "; shorten the sequence or give more text");
    }

    const corpus& text() const { return text_; }
    const batch_layout& layout() const { return layout_; }

    /// Sequences of an epoch.
    std::uint64_t windows() const { return windows_; }

    /// Epochs, whole and in part, that `steps` steps take.
    double epochs(std::uint64_t steps) const {
        return static_cast<double>(steps * layout_.sequences_per_step()) / static_cast<double>(windows_);
    }

    /// Fills the batch of this rank for micro-batch `micro` of step `step`, both counted from 0.
    void fill(std::uint64_t step, int micro, token_batch& batch) const {
        detail::clear_batch(batch, layout_);
        const auto rows = static_cast<std::uint64_t>(layout_.sequences);
        const std::uint64_t begin = step * layout_.sequences_per_step() +
                                    (static_cast<std::uint64_t>(micro) * static_cast<std::uint64_t>(layout_.ranks) +
                                     static_cast<std::uint64_t>(layout_.rank)) *
                                        rows;
        for (std::uint64_t row = 0; row < rows; ++row) {
            const std::uint64_t sequence = begin + row;
            const std::uint64_t window = shuffled(seed_, sequence / windows_, windows_, sequence % windows_);
            detail::fill_sequence(text_, window * static_cast<std::uint64_t>(layout_.length), layout_.end, batch, row);
        }
    }

  private:
    corpus text_;
    batch_layout layout_;
    std::uint64_t seed_;
    std::uint64_t windows_ = 0;
};

/// One pass over held-out text: every token once, in order, in windows of `length` that do not depend on the batch size
/// or the number of ranks. Add up losses and `targets_count` over all batches and ranks and divide once.
/// `micro_batches` of the layout plays no part.
class validation_batches {
  public:
    validation_batches(corpus text, const batch_layout& layout) : text_(std::move(text)), layout_(layout) {
        detail::check_layout(layout);
        const auto length = static_cast<std::uint64_t>(layout.length);
        windows_ = (text_.size() + length - 1) / length;
    }

    const corpus& text() const { return text_; }

    /// Batches on each rank; the last may be padded, on some ranks wholly.
    std::uint64_t count() const {
        const auto together = static_cast<std::uint64_t>(layout_.sequences) * static_cast<std::uint64_t>(layout_.ranks);
        return (windows_ + together - 1) / together;
    }

    /// Fills batch `index` of this rank, counted from 0.
    void fill(std::uint64_t index, token_batch& batch) const {
        detail::clear_batch(batch, layout_);
        const auto rows = static_cast<std::uint64_t>(layout_.sequences);
        const std::uint64_t begin =
            (index * static_cast<std::uint64_t>(layout_.ranks) + static_cast<std::uint64_t>(layout_.rank)) * rows;
        for (std::uint64_t row = 0; row < rows && begin + row < windows_; ++row)
            detail::fill_sequence(text_, (begin + row) * static_cast<std::uint64_t>(layout_.length), layout_.end, batch,
                                  row);
    }

  private:
    corpus text_;
    batch_layout layout_;
    std::uint64_t windows_ = 0;
};

}  // namespace sdepth::inline v0
