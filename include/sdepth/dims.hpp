// SPDX-License-Identifier: MIT
// The sizes: `Dims` is what changes a model's weights, `Run` what one use of it adds. Rank 1.
#pragma once

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

/// Sizes shared by all layers of a model. What a layer kind alone needs (experts, state sizes) is in its policy.
struct Dims {
    long long width = 0;       ///< residual stream, d
    long long head_dim = 0;    ///< one attention head, h
    long long heads = 0;       ///< query heads, H
    long long kv_heads = 0;    ///< key and value heads, Hkv; 0 = as many as query heads
    long long ffn = 0;         ///< hidden width of a dense feed-forward part, F
    long long expert_ffn = 0;  ///< hidden width of one expert, de
    long long vocab = 0;       ///< rows of the embedding, V
    bool tied = false;         ///< the output head is the embedding

    /// Key and value heads, with the default resolved.
    constexpr long long kv() const { return kv_heads == 0 ? heads : kv_heads; }

    friend constexpr bool operator==(const Dims&, const Dims&) = default;
};

/// What the backward pass computes again instead of keeping.
enum class recompute {
    none,
    selective,  ///< the hidden rows of feed-forward parts
    full        ///< everything inside a layer
};

/// Which rule the update follows.
enum class optimiser { adamw, muon };

/// One use of a model. It changes no weight: a model trained at one length loads at another. Sizes are from 1 (those
/// that may be 0 from 0) to 2^30, and so are the tokens of a micro-batch; `check_run` says which is wrong.
struct Run {
    long long seq = 0;            ///< tokens of a sequence, L
    long long batch = 1;          ///< sequences of one micro-batch, B
    long long accumulate = 1;     ///< micro-batches of one optimiser step
    long long document = 0;       ///< mean document length for counts, at most seq; 0 = one document a sequence
    long long max_documents = 1;  ///< documents that a sequence can hold
    long long ranks = 1;          ///< devices that share a step
    long long context = 0;        ///< tokens that a decoded sequence can reach; 0 = seq
    recompute replay = recompute::none;
    optimiser moments = optimiser::adamw;  ///< whose moments memory is kept for: AdamW's two of every number serve Muon
                                           ///< too; Muon's, one of its matrices and two of the rest, serve Muon alone

    friend constexpr bool operator==(const Run&, const Run&) = default;
};

}  // namespace sdepth::inline v0
