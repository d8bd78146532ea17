// SPDX-License-Identifier: MIT
// Arguments of expert layers: router, choice, grouping, products per expert, combination, losses. Rank 5.
//
// N = rows.capacity() rows of width d meet E experts. Each row has W ways, places for an expert that takes it: W = k
// where rows choose, W = E where experts do. An assignment is a row and one of its ways, numbered row * W + way.
// Assignments that are executed have a slot, of S at most; slots lie expert by expert, `offsets` tells where each
// starts, and offsets[E] how many there are. Counts stay in the backend's memory. The router works in the sum type.
#pragma once

#include <cstdint>

#include "sdepth/layers/expert_policy.hpp"
#include "sdepth/rows.hpp"

namespace sdepth::inline v0 {

/// z = W x for every live row.
template <class P>
struct ExpertLogitsArgs {
    batch_rows rows;
    int width = 0;                               // d
    int experts = 0;                             // E
    const typename P::activation* x = nullptr;   // [N, d]
    const typename P::master* weight = nullptr;  // [E, d]
    typename P::sum* logits = nullptr;           // [N, E]
};

template <class P>
struct ExpertLogitsBackwardArgs {
    ExpertLogitsArgs<P> forward;                   // logits is not read
    const typename P::sum* grad_logits = nullptr;  // [N, E]
    typename P::activation* grad_x = nullptr;      // [N, d], added to
    typename P::gradient* grad_weight = nullptr;   // [E, d], added to
};

/// noisy = logits + softplus(spread) normal, the normal number keyed by (seed, layer, token): Shazeer et al. 2017,
/// Eq. 4.
template <class P>
struct ExpertNoiseArgs {
    batch_rows rows;
    int experts = 0;
    std::uint64_t seed = 0;
    std::uint32_t layer = 0;
    std::uint64_t first = 0;                  // number of the batch's first token
    int sequence = 0;                         // L, tokens of a sequence
    const int* ids = nullptr;                 // [N], position of each row
    const typename P::sum* logits = nullptr;  // [N, E]
    const typename P::sum* spread = nullptr;  // [N, E]
    typename P::sum* noisy = nullptr;         // [N, E]
};

template <class P>
struct ExpertNoiseBackwardArgs {
    ExpertNoiseArgs<P> forward;                   // noisy is not read
    const typename P::sum* grad_noisy = nullptr;  // [N, E]
    typename P::sum* grad_logits = nullptr;       // [N, E], added to
    typename P::sum* grad_spread = nullptr;       // [N, E], added to
};

/// Which experts take which rows. By token: the k largest of a row; a bias, if given, is added to the score for this
/// choice alone. By expert: the `capacity` rows of the batch with the largest score, W = E. Balanced: the assignment of
/// k experts a row with the largest sum of logits, at most `capacity` rows an expert. `capacity` follows from the live
/// rows. Ties go to the lower expert, then to the lower row. Throws sdepth::error on a logit that is not finite.
template <class P>
struct ChooseExpertsArgs {
    batch_rows rows;
    int experts = 0;
    int each = 1;  // k
    int ways = 1;  // W
    expert_choice choice = expert_choice::by_token;
    expert_score score = expert_score::softmax;
    double capacity = 1;                       // factor, by expert only
    const typename P::sum* logits = nullptr;   // [N, E]
    const typename P::master* bias = nullptr;  // [E] or null
    int* chosen = nullptr;                     // [N, W], largest first (by token), else rising; -1 = none
    int* wanted = nullptr;                     // [B, E], choices in each sequence
};

/// Weight of each choice: score over the chosen logits or over all, perhaps renormalised over the chosen, times
/// `scale`.
template <class P>
struct ExpertWeightsArgs {
    batch_rows rows;
    int experts = 0;
    int ways = 1;
    expert_score score = expert_score::softmax;
    score_order order = score_order::choose_then_score;
    bool renormalise = true;
    double scale = 1;
    const typename P::sum* logits = nullptr;  // [N, E]
    const int* chosen = nullptr;              // [N, W]
    typename P::sum* weights = nullptr;       // [N, W], 0 where there is none
};

template <class P>
struct ExpertWeightsBackwardArgs {
    ExpertWeightsArgs<P> forward;                   // weights is not read
    const typename P::sum* grad_weights = nullptr;  // [N, W]
    typename P::sum* grad_logits = nullptr;         // [N, E], added to
};

/// Gives assignments their slots: rows rise within an expert. With a capacity factor an expert takes at most
/// expert_capacity(...) rows a round, and `excess` says what becomes of the others; a rerouted assignment changes
/// `chosen`. Statistics are added up where they are given.
template <class P>
struct GroupExpertsArgs {
    batch_rows rows;
    int experts = 0;
    int each = 1;
    int ways = 1;
    double capacity = 0;  // factor; 0 = no limit
    overflow excess = overflow::skip;
    const typename P::sum* logits = nullptr;  // [N, E], read by `reroute`
    const int* wanted = nullptr;              // [B, E]
    int* chosen = nullptr;                    // [N, W]
    int* offsets = nullptr;                   // [E + 1]
    int* assignment = nullptr;                // [S], of each slot
    int* slot = nullptr;                      // [N, W], of each assignment; -1 = none
    long long* load = nullptr;                // [E], += choices before any limit
    long long* counts = nullptr;              // [3], += rows; dropped assignments; rerouted or deferred ones
};

/// out[slot] = x[row of the slot].
template <class P>
struct GatherSlotsArgs {
    batch_rows slots;  // {1, {S, offsets + E}}
    int width = 0;
    int ways = 1;
    const int* assignment = nullptr;            // [S]
    const typename P::activation* x = nullptr;  // [N, width]
    typename P::activation* out = nullptr;      // [S, width]
};

/// sum[row] = sum over its ways, in their order, of y[slot]; or added to what is there.
template <class P>
struct CombineSlotsArgs {
    batch_rows rows;
    int width = 0;
    int ways = 1;
    bool adds = false;
    const int* slot = nullptr;                  // [N, W]
    const typename P::activation* y = nullptr;  // [S, width]
    typename P::activation* sum = nullptr;      // [N, width]
};

/// y = x W_e' for the slots of each expert e.
template <class P>
struct GroupedLinearArgs {
    int experts = 0;
    int inputs = 0;
    int outputs = 0;
    const int* offsets = nullptr;                // [E + 1]
    const typename P::activation* x = nullptr;   // [S, inputs]
    const typename P::weight* weight = nullptr;  // [E, outputs, inputs]
    typename P::activation* y = nullptr;         // [S, outputs]
};

/// An expert without slots gets no gradient: what is there is not touched.
template <class P>
struct GroupedLinearBackwardArgs {
    GroupedLinearArgs<P> forward;                    // y is not read
    const typename P::activation* grad_y = nullptr;  // [S, outputs]
    typename P::activation* grad_x = nullptr;        // [S, inputs]
    bool adds_to_grad_x = false;                     // else overwritten
    typename P::gradient* grad_weight = nullptr;     // [E, outputs, inputs], added to
};

/// act = weight of the slot x silu(gate) x up.
template <class P>
struct WeightedSwigluArgs {
    batch_rows slots;                              // {1, {S, offsets + E}}
    int hidden = 0;                                // F
    const int* assignment = nullptr;               // [S]
    const typename P::sum* weights = nullptr;      // [N, W]
    const typename P::activation* gate = nullptr;  // [S, F]
    const typename P::activation* up = nullptr;    // [S, F]
    typename P::activation* act = nullptr;         // [S, F]
};

template <class P>
struct WeightedSwigluBackwardArgs {
    WeightedSwigluArgs<P> forward;                     // act is not read
    const typename P::activation* grad_act = nullptr;  // [S, F]
    typename P::activation* grad_gate = nullptr;       // [S, F], overwritten
    typename P::activation* grad_up = nullptr;         // [S, F], overwritten; may be grad_act
    typename P::sum* grad_weights = nullptr;           // [N, W], overwritten where an assignment has a slot
};

/// Losses of the router over the live rows of a batch; f is the share of choices, q the mean of the score normalised
/// over all experts, both before any limit.
///
///     top_one, top_k   E sum_e f_e q_e, f of the arg max of q, or of all choices
///     per_sequence     the same of each sequence; the mean over sequences by their rows
///     importance_load  CV(sum of weights)^2 + CV(load)^2; load = the probability of being chosen when a row's own
///     noise is
///                      drawn again (Shazeer et al. 2017, Eq. 9), or without noise the counts, which carry no gradient
///     z                mean over rows of logsumexp(logits)^2
template <class P>
struct ExpertLossArgs {
    batch_rows rows;
    int experts = 0;
    int each = 1;
    int ways = 1;
    expert_score score = expert_score::softmax;
    balance loss = balance::none;
    const typename P::sum* logits = nullptr;   // [N, E], with noise if there is any
    const typename P::sum* clean = nullptr;    // [N, E], without; null: there is none
    const typename P::sum* spread = nullptr;   // [N, E], of the noise
    const typename P::sum* weights = nullptr;  // [N, W]
    const int* chosen = nullptr;               // [N, W]
    const int* wanted = nullptr;               // [B, E]

    double by = 1;           // what the sums count this batch's means with
    double* sums = nullptr;  // [3], += by x balance loss; by x z-loss; sum of q's entropy (nats). Null: none
    double balance_scale = 0, z_scale = 0;    // factors of the gradients
    typename P::sum* grad_logits = nullptr;   // [N, E], overwritten; null: losses only
    typename P::sum* grad_clean = nullptr;    // [N, E], overwritten; null without noise
    typename P::sum* grad_spread = nullptr;   // [N, E], overwritten; null without noise
    typename P::sum* grad_weights = nullptr;  // [N, W], added to
};

/// bias_e += step sign(mean load - load_e) of each layer of a run, once per optimiser step (Wang et al. 2024).
template <class P>
struct SteerExpertsArgs {
    long long layers = 0;
    long long stride = 0;  // numbers from one layer's bias to the next one's
    int experts = 0;
    double step = 0;
    const long long* load = nullptr;     // [layers, E]
    typename P::master* bias = nullptr;  // [E] of the first layer
    const int* finite = nullptr;         // update_scalars::finite; where it is 0 nothing changes; null: never 0
};

}  // namespace sdepth::inline v0
