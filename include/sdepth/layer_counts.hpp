// SPDX-License-Identifier: MIT
// Layers of a model by kind, and those that a token passes on average. Sums over kinds start here. Rank 4.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include "sdepth/inert.hpp"
#include "sdepth/model.hpp"

namespace sdepth::inline v0 {

namespace detail {

/// One value for each layer kind of a model: depth costs arithmetic on few numbers, never another look at a layer.
template <class T, class... Ls, class F>
constexpr std::array<T, sizeof...(Ls)> for_each_kind(type_list<Ls...>, F f) {
    return {f(std::type_identity<Ls>{})...};
}

template <class L>
constexpr long long sparsity_of() {
    if constexpr (skips_rows<L>) {
        return L::sparsity;
    } else {
        return 1;
    }
}

/// Layers of each kind, in whole or only those with weights of their own. The walks over runs add whole numbers and
/// nothing else, for a formula may unroll to tens of thousands.
template <class M>
constexpr std::array<count, M::kinds::size> count_layers(bool owners_only) {
    std::array<count, M::kinds::size> sums{};
    int index = 0;
    for (const layer_run& r : M::runs) {
        if (!owners_only || r.weights == index) sums[static_cast<std::size_t>(r.kind)] += r.times;
        ++index;
    }
    return sums;
}
template <class M>
inline constexpr auto layers_by_kind = count_layers<M>(false);
template <class M>
inline constexpr auto owners_by_kind = count_layers<M>(true);

/// The verdict on sums of the shares of model M's layer kinds: the same numbers whatever was summed, hence one error.
template <class M>
constexpr verdict shares_verdict(bool exact) {
    return require(exact, rule::shares_fit, M::kinds::size);
}

template <class M>
constexpr ratio sum_active_layers() {
    const auto shares = for_each_kind<ratio>(typename M::kinds{},
                                             []<class L>(std::type_identity<L>) { return ratio(1, sparsity_of<L>()); });
    ratio sum;
    for (std::size_t kind = 0; kind < shares.size(); ++kind) sum += shares[kind] * ratio(layers_by_kind<M>[kind]);
    return sum;
}

template <class M>
constexpr auto count_active_layers() {
    if constexpr (countable<M>()) {
        constexpr ratio sum = sum_active_layers<M>();
        constexpr verdict v = shares_verdict<M>(!sum.overflowed());
        if constexpr (accepted<v.broken, v.a, v.b>()) {
            return sum;
        } else {
            return inert_ratio{};
        }
    } else {
        return inert_ratio{};
    }
}

}  // namespace detail

/// Layers that a token passes on average: a sparse layer counts 1/K. `M::layers` is the physical depth.
template <class M>
inline constexpr auto active_layers = detail::count_active_layers<M>();

}  // namespace sdepth::inline v0
