// SPDX-License-Identifier: MIT
// Boost.Hana's literals in force beside ours. Not for nvcc 13.0, which ends without a message over two operators of one
// name that differ in their constraints.
#include <boost/hana/integral_constant.hpp>
#include <type_traits>

#include "sdepth/sdepth.hpp"

using namespace sdepth::literals;
using namespace boost::hana::literals;

static_assert(std::is_same_v<decltype(40_c), boost::hana::llong<40>>, "ours is chosen, without ambiguity");
