// SPDX-License-Identifier: MIT
// The pattern language: one normal form, whatever the spelling, and the runs that it unrolls to.
#include "sdepth/pattern.hpp"

#include <type_traits>

#include "sdepth/runs.hpp"

namespace {

using namespace sdepth;
using namespace sdepth::literals;

// Literals are whole numbers of 63 bits, or an error.
static_assert(std::is_same_v<decltype(4_c), boost::hana::llong<4>>);
static_assert(decltype(0_c)::value == 0 && decltype(1'000_c)::value == 1000 && decltype(0x1F_c)::value == 31);
static_assert(decltype(0b101_c)::value == 5 && decltype(9'223'372'036'854'775'806_c)::value == count::largest - 1);
static_assert(detail::literal_value("9223372036854775807") == -1 && detail::literal_value("010") == -1);
static_assert(detail::literal_value("4.0") == -1 && detail::literal_value("4e1") == -1 &&
              detail::literal_value("0x1p3") == -1 && detail::literal_value("0b2") == -1);

struct A : layer_base {};
struct B : layer_base {};
constexpr A a;
constexpr B b;

template <class P, class Q>
constexpr bool same(P, Q) {
    return std::is_same_v<P, Q>;
}

// Equal neighbours are one run; stacks are flat; a repeat of a repeat is one repeat.
static_assert(same(a + a + a, a * 3_c));
static_assert(same(a * 2_c + a * 3_c, 5_c * a));
static_assert(same((a * 2_c) * 3_c, a * 6_c));
static_assert(same((a + b) * 1_c, a + b));
static_assert(same((a + b) + (a + b), a + b + a + b));
static_assert(same((a + b) * 2_c + (a + b) * 3_c, (a + b) * 5_c));
static_assert(same(a + (a + b), a * 2_c + b));
static_assert(!same(a + b, b + a));
static_assert(!same(loop<2>(a), a * 2_c));
static_assert(!same(a * 0_c + a, a), "a repeat of nothing stays visible to the check");

// What could not be made stays so, without a word.
constexpr broken_formula broken;
static_assert(same(a + broken, broken) && same(broken + (a + b), broken) && same(broken + broken, broken));
static_assert(same(broken * 4_c, broken) && same(1_c * broken, broken) && same(loop<2>(broken), broken));

template <class P>
constexpr layer_run run_at(P, std::size_t i) {
    return runs_of<P>::runs[i];
}
template <class P>
constexpr long long layers(P) {
    return runs_of<P>::layers;
}
template <class P>
constexpr long long size(P) {
    return runs_of<P>::size;
}

// 4 a, then (3 b, a) twice.
constexpr auto nested = a * 4_c + (b * 3_c + a) * 2_c;
static_assert(layers(nested) == 12);
static_assert(size(nested) == 5);
static_assert(runs_of<decltype(nested)>::kinds::size == 2 && runs_of<decltype((nested))>::size == 5);
static_assert(run_at(nested, 0) == layer_run{0, 0, 4, 0});
static_assert(run_at(nested, 1) == layer_run{1, 4, 3, 1});
static_assert(run_at(nested, 3) == layer_run{1, 8, 3, 3});
static_assert(run_at(nested, 4) == layer_run{0, 11, 1, 4});

// The second pass of a loop has the weights of the first; two repetitions of a loop do not share.
constexpr auto looped = a + loop<2>(b * 3_c + a) * 2_c;
static_assert(layers(looped) == 17);
static_assert(run_at(looped, 3) == layer_run{1, 5, 3, 1});
static_assert(run_at(looped, 4) == layer_run{0, 8, 1, 2});
static_assert(run_at(looped, 5) == layer_run{1, 9, 3, 5});
static_assert(run_at(looped, 7) == layer_run{1, 13, 3, 5});
static_assert(run_at(loop<2>(loop<2>(a)), 3).weights == 0);

// Depth is data: a thousand layers are one type and one element.
static_assert(size(a * 1000_c) == 1 && layers(a * 1000_c) == 1000);
static_assert(runs_of<decltype((a + b) * 40000_c)>::too_many);

}  // namespace
