// SPDX-License-Identifier: MIT
// The layers of a model as Hana values, and Hana's algorithms over them.
#include "sdepth/hana.hpp"

#include <boost/hana/equal.hpp>
#include <boost/hana/first.hpp>
#include <boost/hana/fold_left.hpp>
#include <boost/hana/length.hpp>
#include <boost/hana/plus.hpp>
#include <boost/hana/second.hpp>
#include <boost/hana/unpack.hpp>
#include <type_traits>

#include "sdepth/sdepth.hpp"

namespace {

using namespace sdepth;
using namespace sdepth::literals;
namespace hana = boost::hana;

constexpr Dims small{.width = 64, .head_dim = 16, .heads = 4, .ffn = 128, .vocab = 256};
constexpr auto formula = dense * 2_c + (sparse<4> * 8_c + dense) * 3_c;
using M = Model<formula, small>;

using sparse_layer = std::remove_cvref_t<decltype(sparse<4>)>;
static_assert(std::is_same_v<hana_kinds<M>, hana::tuple<hana::pair<hana::type<Dense>, hana::llong<5>>,
                                                        hana::pair<hana::type<sparse_layer>, hana::llong<24>>>>);
static_assert(decltype(hana::length(runs_as_hana<M>))::value == 7);
static_assert(hana::second(runs_as_hana<M>[hana::size_c<1>]) == hana::llong_c<8>);
static_assert(hana::first(runs_as_hana<M>[hana::size_c<2>]) == hana::type<Dense>{});

constexpr auto add_layers = [](auto sum, auto layers) { return sum + hana::second(layers); };
static_assert(decltype(hana::fold_left(runs_as_hana<M>, hana::llong_c<0>, add_layers))::value == M::layers);
static_assert(decltype(hana::fold_left(kinds_as_hana<M>, hana::llong_c<0>, add_layers))::value == M::layers);

}  // namespace
