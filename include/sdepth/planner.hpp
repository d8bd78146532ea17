// SPDX-License-Identifier: MIT
// From an active depth to a formula: the X-MoD plan (Eq. 14, 15). What a compute budget buys is in `token_budget.hpp`,
// models to compare with in `partner.hpp`; which K and A to ask for is the law's business (`law.hpp`). Rank 4.
#pragma once

#include <type_traits>

#include "sdepth/error.hpp"
#include "sdepth/law.hpp"
#include "sdepth/layers/block.hpp"
#include "sdepth/layers/sparse.hpp"
#include "sdepth/model.hpp"

namespace sdepth::inline v0 {

/// The anchor stride A, whole or a fraction: `.stride = 4`, `.stride = {1, 2}`.
struct anchor_stride {
    long long num = 1;
    long long den = 1;

    constexpr anchor_stride() = default;
    constexpr anchor_stride(long long whole) : num(whole) {}  // NOLINT(google-explicit-constructor): a number is one
    constexpr anchor_stride(long long numerator, long long denominator) : num(numerator), den(denominator) {}
    constexpr double value() const { return static_cast<double>(num) / static_cast<double>(den); }

    friend constexpr bool operator==(const anchor_stride&, const anchor_stride&) = default;
};

/// What the budget of a model with sparse depth leaves to choose.
struct x_mod_plan {
    long long active = 0;    ///< active-equivalent layers, prefix included
    long long prefix = 0;    ///< N0, dense layers at the start
    anchor_stride stride{};  ///< A, sparse updates of a token between two anchors
    long long sparsity = 1;  ///< K

    friend constexpr bool operator==(const x_mod_plan&, const x_mod_plan&) = default;
};

/// The layers of a plan (Eq. 3): prefix, perhaps one shorter block, then equal blocks of A K sparse layers and an
/// anchor.
struct x_mod_blocks {
    long long prefix = 0;
    bool shorter = false;    ///< whether a shorter block comes first
    long long first = 0;     ///< sparse layers of that block; it has an anchor too
    long long blocks = 0;    ///< whole blocks
    long long sparse = 0;    ///< sparse layers of a whole block, A K
    long long sparsity = 1;  ///< K

    constexpr long long anchors() const { return blocks + (shorter ? 1 : 0); }
    constexpr long long sparse_layers() const { return first + blocks * sparse; }
    constexpr long long layers() const { return prefix + anchors() + sparse_layers(); }
    /// Active-equivalent layers. Below the plan's by less than one where A is a fraction and no block fits the rest.
    constexpr ratio active() const { return ratio(prefix + anchors()) + ratio(sparse_layers(), sparsity); }
};

/// The first broken rule of a plan.
constexpr verdict check_plan(const x_mod_plan& p) {
    using detail::require;
    const auto [num, den] = p.stride;
    if (p.sparsity < 1) return {rule::sparsity_at_least_one, 0, p.sparsity};
    if (num < 1 || den < 1) return {rule::stride_gives_whole_layers, 0, num, den};
    if (p.active < 1 || p.prefix < 0 || p.prefix > p.active) return {rule::prefix_within_budget, 0, p.prefix, p.active};
    const count sparse = count(num) * count(p.sparsity);
    const count depth = count(p.active) * count(p.sparsity) * (count(num) + count(den));  // bounds all that follows
    if (sparse.overflowed() || depth.overflowed()) return {rule::counts_fit, 0, count::largest};
    return require(sparse.value() % den == 0, rule::stride_gives_whole_layers, sparse.value(), den);
}

/// The blocks of a plan. H = active - prefix is filled with blocks of A + 1; what is left
/// becomes a shorter block in front (24 = 4 + 4 x 5 at A = 4: one block of A = 3, four of A = 4). For a plan that
/// breaks a rule it throws `error`, and is no constant.
constexpr x_mod_blocks blocks_of(const x_mod_plan& p) {
    if (!check_plan(p).ok()) throw error("sdepth: blocks_of: no such plan: see check_plan(plan) for the broken rule");
    const long long den = p.stride.den;
    const long long rest_of = (p.active - p.prefix) * den;  // in units of 1/den layers
    const long long block = p.stride.num + den;
    const long long rest = rest_of % block;
    x_mod_blocks b{.prefix = p.prefix, .blocks = rest_of / block, .sparsity = p.sparsity};
    b.sparse = p.stride.num * p.sparsity / den;
    b.shorter = rest >= den;
    if (b.shorter) b.first = (rest - den) * p.sparsity / den;
    return b;
}

namespace detail {

struct no_layers {};

template <long long N, class P>
constexpr auto times(P) {
    if constexpr (N == 0) {
        return no_layers{};
    } else {
        return P{} * std::integral_constant<long long, N>{};
    }
}

template <class A, class B>
constexpr auto then(A, B) {
    if constexpr (std::is_same_v<A, no_layers>) {
        return B{};
    } else if constexpr (std::is_same_v<B, no_layers>) {
        return A{};
    } else {
        return A{} + B{};
    }
}

template <x_mod_plan P, class L, sparse_policy S>
struct plan_gate {
    static constexpr verdict judgement = check_plan(P);
    static_assert(report<judgement.broken, judgement.layer, judgement.a, judgement.b, void>());

    static constexpr auto formula() {
        if constexpr (!judgement.ok()) {
            return broken_formula{};
        } else {
            constexpr x_mod_blocks b = blocks_of(P);
            constexpr Sparse<P.sparsity, L, evaluated(S)> skipping{};
            constexpr auto shorter = then(times<b.first>(skipping), L{});
            constexpr auto whole = then(times<b.sparse>(skipping), L{});
            return then(times<b.prefix>(L{}), then(times < b.shorter ? 1 : 0 > (shorter), times<b.blocks>(whole)));
        }
    }
};

}  // namespace detail

/// The formula of a plan, the same type as if written out.
///
///     constexpr auto a4k8 = planned<x_mod_plan{.active = 28, .prefix = 4, .stride = 4, .sparsity = 8}>;
///
/// @tparam L  the layer of prefix and anchors, and inside the sparse layers
/// @tparam S  policy of the sparse layers
template <x_mod_plan P, class L = Dense, sparse_policy S = sparse_policy{}>
inline constexpr auto planned = detail::plan_gate<detail::evaluated(P), L, detail::evaluated(S)>::formula();

/// Where the law stands for a plan: real layer counts, not the fractional blocks of Eq. 4.
/// @param active_params  parameters of the dense model of the same active depth
constexpr law_point law_point_of(const x_mod_plan& p, double active_params, double seq) {
    const x_mod_blocks b = blocks_of(p);
    return {.active = active_params,
            .seq = seq,
            .sparsity = static_cast<double>(p.sparsity),
            .stride = p.stride.value(),
            .capacity = static_cast<double>(b.layers()) / b.active().value()};
}

}  // namespace sdepth::inline v0
