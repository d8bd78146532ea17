// SPDX-License-Identifier: MIT
// Models to compare a model with, as types; `alignment.hpp` says what is equal between two models. Rank 4.
#pragma once

#include <cstddef>
#include <type_traits>

#include "sdepth/flops.hpp"
#include "sdepth/inert.hpp"
#include "sdepth/layer_counts.hpp"
#include "sdepth/layers/block.hpp"
#include "sdepth/model.hpp"
#include "sdepth/params.hpp"

namespace sdepth::inline v0 {

namespace detail {

template <class M>
constexpr ratio count_active_depth() {
    struct passes {
        ratio mixer{}, ffn{};
    };
    const auto layers = for_each_kind<passes>(typename M::kinds{}, []<class L>(std::type_identity<L>) {
        const ratio share(1, sparsity_of<L>());
        return passes{L::has_mixer ? share : ratio(0), L::has_ffn ? share : ratio(0)};
    });
    ratio mixers;
    ratio ffns;
    for (const layer_run& r : M::runs) {
        mixers += ratio(r.times) * layers[static_cast<std::size_t>(r.kind)].mixer;
        ffns += ratio(r.times) * layers[static_cast<std::size_t>(r.kind)].ffn;
    }
    return mixers < ffns ? ffns : mixers;
}

// The whole number n >= 1 for which first + (n - 1) step comes nearest to wanted; the smaller of two equally near.
constexpr long long nearest_steps(ratio wanted, ratio first, ratio step) {
    const double n = (wanted.value() - first.value()) / step.value();
    const long long below = n < 0 ? 0 : static_cast<long long>(n);
    return 1 + below + (n - static_cast<double>(below) > 0.5 ? 1 : 0);
}

// N layers L of sizes D, as a partner of M. A model that broke a rule is its own partner, and an N below 1, whose error
// is reported already, gives an inert one: one error is enough.
template <class M, class L, long long N, Dims D = evaluated(M::dims), bool = M::valid>
struct stack_for {
    using type = M;
};
template <class M, class L, long long N, Dims D>
struct stack_for<M, L, N, D, true> {
    using formula = std::conditional_t<(N < 1), broken_formula, typename repeated<L, N>::type>;
    using type = Model<formula{}, evaluated(D)>;
};

constexpr Dims with_ffn(Dims d, long long ffn) {
    d.ffn = ffn;
    return d;
}

template <class M>
constexpr long long whole_active_depth() {
    constexpr ratio depth = M::valid ? count_active_depth<M>() : ratio(1);
    constexpr verdict v =
        require(depth.den() == 1 && depth.num() > 0, rule::active_depth_is_whole, depth.num(), depth.den());
    static_assert(report<v.broken, v.layer, v.a, v.b, void>());
    return v.ok() ? depth.num() : 0;
}

// A struct, as `match` below: in a function template, nvcc 13 misprints R even when evaluated.
template <class M, Run R, class L>
struct depth_of_equal_flops {
    using one = typename stack_for<M, L, 1>::type;
    static constexpr long long value = [] {
        if constexpr (has_flops<M, evaluated(R)> && has_flops<one, evaluated(R)>) {
            constexpr ratio layer = flops<one, evaluated(R)>.paper.sequence;
            return nearest_steps(flops<M, evaluated(R)>.paper.sequence, layer, layer);
        } else {
            return one::valid ? 0 : 1;
        }
    }();
};

template <class M, class L>
constexpr long long depth_of_equal_params() {
    using shallow = typename stack_for<M, L, 1>::type;
    if constexpr (has_params<M> && has_params<shallow>) {
        const long long one = params<shallow>.total;
        const long long two = params<typename stack_for<M, L, 2>::type>.total;
        return nearest_steps(params<M>.total, one, two - one);
    } else {
        return shallow::valid ? 0 : 1;
    }
}

template <class M, long long Multiple, class L>
struct wider_stack {
    static constexpr long long active = whole_active_depth<M>();

    static constexpr long long ffn() {
        static_assert(Multiple > 0, "sdepth: equal_params_wider<M, Multiple> widens in multiples: make it at least 1");
        if constexpr (Multiple > 0) {
            return nearest_ffn();
        } else {
            return 0;
        }
    }
    static constexpr long long nearest_ffn() {
        using narrow = typename stack_for<M, L, active, with_ffn(M::dims, Multiple)>::type;
        if constexpr (has_params<M> && has_params<narrow>) {
            constexpr long long one = params<narrow>.total;
            constexpr long long two =
                params<typename stack_for<M, L, active, with_ffn(M::dims, 2 * Multiple)>::type>.total;
            static_assert(two > one,
                          "sdepth: the partner's layer does not widen with Dims::ffn: use equal_params instead");
            return two > one ? Multiple * nearest_steps(params<M>.total, one, two - one) : 0;
        } else {
            return narrow::valid ? 0 : Multiple;
        }
    }
    static constexpr long long depth = ffn() < 1 ? 0 : active;
    using type = typename stack_for<M, L, depth, with_ffn(M::dims, ffn())>::type;
};

// M; in place of what is no model, which is one error, a model that broke a rule.
template <class M>
constexpr auto model_or_broken() {
    (void)countable<M>();
    if constexpr (requires { typename M::formula; }) {
        return std::type_identity<M>{};
    } else {
        return std::type_identity<Model<broken_formula{}, Dims{}>>{};
    }
}
template <class M>
using partnered = typename decltype(model_or_broken<M>())::type;

}  // namespace detail

/// Active-equivalent depth: mixers that a token passes on average, or feed-forward parts if they are more. Where a
/// layer of the formula is only one of the two, `active_layers` counts more: 47 for Routed-FFN A4K8, whose depth is 28.
template <class M>
inline constexpr auto active_depth = detail::unless_broken<M, detail::inert_ratio>(
    []<class Good>(std::type_identity<Good>) { return detail::count_active_depth<Good>(); });

/// The model of as many layers L as M has active ones, with M's sizes: the dense model of equal active depth. It is the
/// partner at equal training FLOPs (it sees fewer tokens, `matched`) and at equal tokens (it costs more FLOPs).
/// An error if the active depth is not whole.
template <class M, class L = Dense>
using equal_active =
    typename detail::stack_for<detail::partnered<M>, L, detail::whole_active_depth<detail::partnered<M>>()>::type;

/// The model of layers L whose FLOPs per token (`paper`) come nearest to M's; the shallower of two equally near. Equal
/// training FLOPs are then equal tokens too, up to `matched`.
template <class M, Run R, class L = Dense>
using equal_flops = typename detail::stack_for<
    detail::partnered<M>, L, detail::depth_of_equal_flops<detail::partnered<M>, detail::evaluated(R), L>::value>::type;

/// The model of layers L whose total parameters come nearest to M's, of M's width; the shallower of two equally near.
template <class M, class L = Dense>
using equal_params =
    typename detail::stack_for<detail::partnered<M>, L, detail::depth_of_equal_params<detail::partnered<M>, L>()>::type;

/// The same of M's active depth, with a wider feed-forward part: `Dims::ffn` is the multiple of `Multiple` whose total
/// comes nearest; the narrower of two equally near.
template <class M, long long Multiple = 64, class L = Dense>
using equal_params_wider = typename detail::wider_stack<detail::partnered<M>, Multiple, L>::type;

}  // namespace sdepth::inline v0
