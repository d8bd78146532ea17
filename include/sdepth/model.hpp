// SPDX-License-Identifier: MIT
// A model as a type: a formula with sizes. The gate: a bad one reports one error and instantiates nothing more. Rank 3.
#pragma once

#include <cstddef>
#include <type_traits>

#include "sdepth/check.hpp"
#include "sdepth/explain.hpp"
#include "sdepth/inert.hpp"

namespace sdepth::inline v0 {

namespace detail {

template <class P, class Sizes>
constexpr verdict judge() {
    if constexpr (std::is_same_v<P, broken_formula>) {
        return {};  // reported where the formula was written
    } else if constexpr (pattern<P>) {
        constexpr verdict repeats = check_repeats<P>();
        if constexpr (!repeats.ok()) {
            return repeats;
        } else if constexpr (constexpr verdict v = check_constants<P, Sizes>(typename runs_of<P>::kinds{}); !v.ok()) {
            return v;
        } else {
            return check<P>(Sizes::dims);
        }
    } else {
        return {rule::not_a_formula};
    }
}

struct inert_run : inert_base {
    inert_number kind, first, times, weights;
    constexpr operator layer_run() const { return {}; }  // NOLINT(google-explicit-constructor): as its numbers
};
struct inert_kinds : type_list<> {
    static constexpr inert_number size{};
};

template <class P>
struct empty_formula {
    using kinds = inert_kinds;
    static constexpr inert_list<inert_run, layer_run> runs{};
    static constexpr inert_number layers{};
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
    using sizes = detail::sizes_of<detail::evaluated(D)>;
    static constexpr verdict judgement = detail::judge<formula, sizes>();
    static constexpr bool valid = judgement.ok() && !std::is_same_v<formula, broken_formula>;
    static_assert(detail::report<judgement.broken, judgement.layer, judgement.a, judgement.b,
                                 typename detail::culprit<formula, sizes, judgement.broken, judgement.layer>::type>());

    using expansion = std::conditional_t<valid, runs_of<formula>, detail::empty_formula<formula>>;
    using kinds = typename expansion::kinds;

    /// Runs of equal layers in order of execution.
    static constexpr const auto& runs = expansion::runs;
    /// Items of the formula, repetitions counted.
    static constexpr auto layers = expansion::layers;
    /// Items with a feed-forward part (the depth of the X-MoD paper's Table 7).
    static constexpr auto ffn_layers = [] {
        if constexpr (valid) {
            count with_ffn;
            for (const layer_run& r : runs) {
                visit_type(kinds{}, r.kind, [&]<class L>(std::type_identity<L>) {
                    if (L::has_ffn) with_ffn += r.times;
                });
            }
            return with_ffn.value();
        } else {
            return detail::inert_number{};
        }
    }();
};

namespace detail {

/// Runs of model M, a built-in number: 0 for one that broke a rule.
template <class M>
inline constexpr std::size_t run_count = [] {
    if constexpr (M::valid) {
        return M::runs.size();
    } else {
        return std::size_t{0};
    }
}();

/// Whether M is a model that broke no rule. What is no model is one error.
template <class M>
constexpr bool countable() {
    constexpr bool is_model = requires {
        typename M::formula;
        M::valid;
    };
    static_assert(is_model, "sdepth: only models have counts: name one, using M = Model<formula, sizes>");
    if constexpr (is_model) {
        return M::valid;
    } else {
        return false;
    }
}

/// What f gives for model M, or for one that broke a rule, for which f is not instantiated, a stand-in.
template <class M, class Inert = inert_number, class F>
constexpr auto unless_broken(F f) {
    if constexpr (countable<M>()) {
        return f(std::type_identity<M>{});
    } else {
        return Inert{};
    }
}

/// Whether model M can be used in run R. A broken run is one error; a broken model has reported itself.
template <class M, Run R>
constexpr bool usable_in() {
    if constexpr (!requires { typename std::bool_constant<check_run(R).ok()>; }) {
        return false;  // R has an error of its own
    } else if constexpr (countable<M>()) {
        constexpr verdict v = check_run(R);
        return accepted<v.broken, v.a, v.b>();
    } else {
        return false;
    }
}

/// The first layer of model M whose router sees the future, and how many there are.
template <class M>
constexpr verdict causality() {
    verdict v;
    for (const layer_run& r : M::runs) {
        visit_type(typename M::kinds{}, r.kind, [&]<class L>(std::type_identity<L>) {
            if (L::causal) return;
            if (v.ok()) v = {rule::non_causal_router, r.first + 1};
            v.a += r.times;
        });
    }
    return v;
}

}  // namespace detail

/// Whether every layer routes causally; Expert Choice and BASE do not.
template <class M>
inline constexpr auto is_causal = detail::unless_broken<M, detail::inert_truth>(
    []<class Good>(std::type_identity<Good>) { return detail::causality<Good>().ok(); });

/// Asserts that model M can be evaluated causally: one compile-time error that names the first layer that cannot, else
/// true. Whoever scores or decodes token by token asks this first.
template <class M>
constexpr bool require_causal() {
    if constexpr (detail::countable<M>()) {
        constexpr verdict v = detail::causality<M>();
        return detail::report<v.broken, v.layer, v.a, v.b, void>();
    } else {
        return true;  // reported already
    }
}

}  // namespace sdepth::inline v0
