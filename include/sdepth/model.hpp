// SPDX-License-Identifier: MIT
// A model as a type: a formula with sizes. The gate: a bad one reports one error and instantiates nothing more. Rank 3.
#pragma once

#include <type_traits>

#include "sdepth/check.hpp"
#include "sdepth/explain.hpp"

namespace sdepth::inline v0 {

namespace detail {

template <class P, Dims D>
struct judged {
    static constexpr verdict value = check<P>(D);
    static constexpr bool reported = report<P, value.broken, value.layer, value.a, value.b>();
};

// A plain value in place of a formula.
template <class P, Dims D>
requires(!pattern<P>) struct judged<P, D> {
    static constexpr verdict value{rule::lacks_member};
    static constexpr bool reported = explain::not_a_formula<P>();
};

template <class P>
struct empty_formula {
    using kinds = type_list<>;
    static constexpr std::array<layer_run, 0> runs{};
    static constexpr long long layers = 0;
};

}  // namespace detail

/// A formula and its sizes.
///
///     constexpr auto a1k4 = dense * 2_c + (sparse<4> * 4_c + dense) * 2_c;
///     using M = Model<a1k4, Dims{.width = 256, .head_dim = 64, .heads = 4, .kv_heads = 2, .ffn = 768, .vocab = 256}>;
///     static_assert(M::layers == 12);
///
/// @tparam Formula  a value of the pattern language
/// @tparam D        the sizes; a broken rule is one compile-time error that names rule, layer and numbers
template <auto Formula, Dims D>
struct Model {
    using formula = std::remove_cvref_t<decltype(Formula)>;  // nvcc's host pass makes it a reference
    static constexpr Dims dims = D;
    static constexpr verdict judgement = detail::judged<formula, D>::value;
    static constexpr bool valid = judgement.ok();
    static_assert(detail::judged<formula, D>::reported);

    using expansion = std::conditional_t<valid, runs_of<formula>, detail::empty_formula<formula>>;
    using kinds = typename expansion::kinds;

    /// Runs of equal layers in order of execution.
    static constexpr const auto& runs = expansion::runs;
    /// Items of the formula, repetitions counted.
    static constexpr long long layers = expansion::layers;
    /// Items with a feed-forward part (the depth of the X-MoD paper's Table 7).
    static constexpr long long ffn_layers = [] {
        count with_ffn;
        for (const layer_run& r : runs) {
            visit_type(kinds{}, r.kind, [&]<class L>(std::type_identity<L>) {
                if (L::has_ffn) with_ffn += r.times;
            });
        }
        return with_ffn.value();
    }();
};

/// Whether every layer routes causally; Expert Choice and BASE do not, and causal evaluation refuses them.
template <class M>
inline constexpr bool is_causal =
    []<class... Ls>(type_list<Ls...>) { return (true && ... && Ls::causal); }(typename M::kinds{});

}  // namespace sdepth::inline v0
