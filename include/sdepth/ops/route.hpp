// SPDX-License-Identifier: MIT
// Arguments of sparse-depth routing: logits, selection, the gated residual, the routing loss. Rank 5.
//
// s_i = w . x_i, v_i = s_i - tau b_i, u_i = v_i - c, r_i = sigmoid(gate logit). Everything here is in the sum type.
#pragma once

#include <cmath>

#include "sdepth/choices.hpp"
#include "sdepth/config.hpp"
#include "sdepth/rows.hpp"

namespace sdepth::inline v0 {

/// s_i = w . x_i for every live row.
template <class P>
struct RouteLogitsArgs {
    batch_rows rows;                             // N = rows.capacity()
    int width = 0;                               // d
    const typename P::activation* x = nullptr;   // [N, d]
    const typename P::master* weight = nullptr;  // [d]
    typename P::sum* logits = nullptr;           // [N]
};

/// Gradients of the router: grad_weight += sum_i grad_logits_i x_i; grad_x_i += grad_x_logits_i w.
template <class P>
struct RouteLogitsBackwardArgs {
    RouteLogitsArgs<P> forward;
    const typename P::sum* grad_logits = nullptr;    // [N], what reaches w
    const typename P::sum* grad_x_logits = nullptr;  // [N], what reaches x: less where the routing loss is detached
    typename P::gradient* grad_weight = nullptr;     // [d], added to
    typename P::activation* grad_x = nullptr;        // [N, d], added to; null: only w gets a gradient
};

/// Gradients that the routers of a run of sparse layers leave at one version of some rows. Between two layers that
/// choose it a row does not change, so that all routers from the one to the other read the same numbers, and their
/// gradients reach them together:
///
///     for each row i of ids and each layer j of first ... n - 1 - later[i]:  grad_x_i += g_ij w_j,  sums_j += g_ij x_i
///
/// and then later[i] = n - first. Called once for each layer of the run, from the last to the first, with the rows that
/// it chose as they stand after it, and at the end for all rows as they stand before the run, where the sums, zero at
/// the start, are added to the gradients of the weights.
template <class P>
struct RouteVersionBackwardArgs {
    batch_rows rows;   // of ids
    int sequence = 0;  // L
    int width = 0;     // d
    int layers = 0;    // of the run, n
    int first = 0;     // first layer that reads this version

    const int* ids = nullptr;                    // [B, rows.each.capacity]; null: every row, and the run is at its end
    const typename P::activation* x = nullptr;   // [B, L, d]
    const typename P::master* weight = nullptr;  // [d] of the run's first layer,
    long long stride = 0;                        // numbers from there to the next layer's
    const typename P::sum* grad_logits = nullptr;  // [n, B, L]
    int* later = nullptr;                          // [B, L], layers that read later versions; zero at the start
    typename P::activation* grad_x = nullptr;      // [B, L, d], added to
    typename P::sum* sums = nullptr;               // [Backend::route_parts, n, d]
    typename P::gradient* grad_weight = nullptr;   // [d] of the run's first layer, added to at the end,
    long long grad_stride = 0;                     // numbers from there to the next layer's
};

/// Logits that the routers of a run of sparse layers read at one version of some rows, as RouteVersionBackwardArgs has
/// their gradients: for each row i of ids and each layer j of first ... n - 1, s_ji = w_j . x_i. Called for all rows
/// before the run and, after each of its layers, for the rows that it chose: the others read the same numbers as
/// before.
template <class P>
struct RouteVersionLogitsArgs {
    batch_rows rows;   // of ids
    int sequence = 0;  // L
    int width = 0;     // d
    int layers = 0;    // of the run, n
    int first = 0;     // first layer that reads this version

    const int* ids = nullptr;                    // [B, rows.each.capacity]; null: every row
    const typename P::activation* x = nullptr;   // [B, L, d]
    const typename P::master* weight = nullptr;  // [d] of the run's first layer,
    long long stride = 0;                        // numbers from there to the next layer's
    typename P::sum* logits = nullptr;           // [B, L] of the run's first layer,
    long long logits_stride = 0;                 // numbers from there to the next layer's
};

/// How rows are chosen.
enum class selection_rule {
    top,       ///< the ceil(n / K) largest v of each group; ties to the lower position (training)
    threshold  ///< u >= 0 (evaluation; causal)
};

/// What a group adds to SelectArgs::cut_sum: the midpoint between its last chosen and its first unchosen v, to a
/// multiple of 2^-32, so that sums below 2^21 are exact and no order of adding changes them.
SDEPTH_HOST_DEVICE inline double cut_between(double last_in, double first_out) {
    return std::rint((last_in + first_out) / 2 * 4294967296.0) / 4294967296.0;
}

/// Chooses rows of each sequence. A group is a sequence, or a document where `documents` is given; only live rows
/// count. ids rise within a sequence. K = 1 chooses every live row under both rules.
template <class P>
struct SelectArgs {
    batch_rows rows;         // of x; N = rows.capacity(), L = rows.each.capacity
    int capacity = 0;        // rows of ids in a sequence
    long long sparsity = 1;  // K
    selection_rule rule = selection_rule::top;
    double tau = 1;
    bool biased = true;  // false: v = s

    const typename P::sum* logits = nullptr;  // s, [N]
    const typename P::sum* bias = nullptr;    // b, [N]
    const typename P::master* cut = nullptr;  // c, one number; null = 0
    const int* documents = nullptr;           // [N] document of a row, rising; null: one group a sequence

    typename P::sum* u = nullptr;     // [N], v - c of every live row
    int* ids = nullptr;               // [B, capacity]
    int* live = nullptr;              // [B]
    double* cut_sum = nullptr;        // += cut_between the last chosen and the first unchosen v, over groups with both
    long long* cut_groups = nullptr;  // += number of those groups; both null: not measured
};

/// First and last visible key row of each query row, for AttentionArgs: causal, inside the query's document, at most
/// `window` original positions back (its own included; 0 = all).
struct VisibilityArgs {
    batch_rows queries;      // rows of ids
    batch_rows keys;         // with `full_keys` all rows of the sequence, else the same as queries
    bool full_keys = false;  // key row j is position j, else position ids[j]
    int window = 0;
    const int* ids = nullptr;            // [B, queries.each.capacity], position of each query row
    const int* documents = nullptr;      // [B, L], document of a position, rising; null: one a sequence
    int sequence = 0;                    // L
    const int* key_positions = nullptr;  // [B, keys.each.capacity], rising; null: as above. With them ids are positions
                                         // in the whole sequence, and there are no documents
    int* first = nullptr;                // [B, queries.each.capacity]
    int* last = nullptr;                 // the same; dead rows get an empty range
};

/// x[b, ids[b, j]] += gated branches of row j, r = sigmoid(gate logit of that row); and b += increment for them.
template <class P>
struct ScatterResidualArgs {
    batch_rows rows;   // chosen rows, N = rows.capacity()
    int sequence = 0;  // L
    int width = 0;     // d
    gate_form gate = gate_form::layer;
    double increment = 1;

    const int* ids = nullptr;                      // [N]
    const typename P::sum* gate_logits = nullptr;  // [B, L]
    const typename P::master* scale = nullptr;     // one number; null = 1
    const typename P::activation* a = nullptr;     // [N, d], mixer branch; null without a mixer
    const typename P::activation* f = nullptr;     // [N, d], feed-forward branch; null without one
    typename P::activation* x = nullptr;           // [B, L, d], added to
    typename P::sum* bias = nullptr;               // b, [B, L], added to
};

/// Gradients of the gated residual at the chosen rows. grad_x itself passes through unchanged. With `before`, the
/// chosen rows of x are set back.
template <class P>
struct ScatterResidualBackwardArgs {
    ScatterResidualArgs<P> forward;                  // x and bias are not read
    const typename P::activation* before = nullptr;  // [N, d], rows of x as they were; null: x is left alone
    const typename P::activation* grad_x = nullptr;  // [B, L, d]
    typename P::activation* grad_a = nullptr;        // [N, d], overwritten
    typename P::activation* grad_f = nullptr;        // [N, d], overwritten
    typename P::sum* grad_logits = nullptr;          // [B, L], added to at the chosen rows
    typename P::gradient* grad_scale = nullptr;      // one number, added to; null without a scale
};

/// Routing loss (Eq. 9): loss_sum += sum over live rows of BCE_with_logits(q_i, logit_i), q_i = row i was chosen, and
/// grad_logits_i = scale (sigmoid(logit_i) - q_i), overwritten. No gradient reaches b, c or q.
template <class P>
struct RouteLossArgs {
    batch_rows rows;                          // of the logits, N = rows.capacity(), L = rows.each.capacity
    batch_rows chosen;                        // of ids
    double scale = 0;                         // loss weight / (sparse layers * rows of the optimiser step)
    const typename P::sum* logits = nullptr;  // [N]
    const int* ids = nullptr;                 // [B, chosen.each.capacity]
    double* loss_sum = nullptr;
    typename P::sum* grad_logits = nullptr;  // [N]; null: loss only
};

/// Tracked cuts of one run, once per optimiser step: c += rate (mean cut - c) where there was a cut, else c stays.
template <class P>
struct TrackCutArgs {
    long long layers = 0;
    long long stride = 0;  // numbers from one layer's c to the next one's
    double rate = 0;
    const double* cut_sum = nullptr;        // [layers]
    const long long* cut_groups = nullptr;  // [layers]
    typename P::master* cut = nullptr;      // the first layer's c
    const int* finite = nullptr;            // update_scalars::finite; where it is 0 nothing changes; null: never 0
};

}  // namespace sdepth::inline v0
