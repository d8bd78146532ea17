// SPDX-License-Identifier: MIT
// The layers of a model as Boost.Hana values, for host code that maps over them. Runs and kinds only: a tuple of one
// element a layer would cost minutes. Not part of `sdepth.hpp`. Rank 4.
#pragma once

#include <boost/hana/integral_constant.hpp>
#include <boost/hana/pair.hpp>
#include <boost/hana/tuple.hpp>
#include <boost/hana/type.hpp>
#include <cstddef>
#include <utility>

#include "sdepth/layer_counts.hpp"
#include "sdepth/model.hpp"

namespace sdepth::inline v0 {

namespace detail {

/// A layer type and how many layers of it.
template <class L, long long Times>
using hana_layers = boost::hana::pair<boost::hana::type<L>, boost::hana::llong<Times>>;

// Types alone, never a call: Hana 1.74 gives its function objects internal linkage, so an inline function that names
// one would differ between two units.
template <class M, std::size_t... Is>
auto runs_to_hana(std::index_sequence<Is...>) -> boost::hana::tuple<hana_layers<
    typename element<static_cast<std::size_t>(M::runs[Is].kind), typename M::kinds>::type, M::runs[Is].times>...>;

template <class M, class... Ls, std::size_t... Is>
auto kinds_to_hana(type_list<Ls...>, std::index_sequence<Is...>)
    -> boost::hana::tuple<hana_layers<Ls, count_layers<M>(false)[Is].value()>...>;
template <class M, class... Ls>
auto kinds_to_hana(type_list<Ls...> kinds) -> decltype(kinds_to_hana<M>(kinds, std::index_sequence_for<Ls...>{}));

}  // namespace detail

/// The runs of model M in order of execution, none of a model that broke a rule: `hana::tuple` of pairs of
/// `hana::type<layer>` and the number of layers. A block repeated n times gives n runs; beyond some hundred of them
/// take the kinds.
template <class M>
using hana_runs = decltype(detail::runs_to_hana<M>(std::make_index_sequence<detail::run_count<M>>{}));
template <class M>
inline constexpr hana_runs<M> runs_as_hana{};

/// The layer kinds of model M in order of appearance, each with the number of its layers.
template <class M>
using hana_kinds = decltype(detail::kinds_to_hana<M>(typename M::kinds{}));
template <class M>
inline constexpr hana_kinds<M> kinds_as_hana{};

}  // namespace sdepth::inline v0
