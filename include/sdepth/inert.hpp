// SPDX-License-Identifier: MIT
// Stand-ins for the numbers of a model that broke a rule: they agree with whatever they are compared with, so that
// assertions on its counts add no second error to the rule's own. Rank 2.
#pragma once

#include <concepts>

#include "sdepth/numbers.hpp"

namespace sdepth::inline v0::detail {

struct inert_base {};

/// In place of a whole number.
struct inert_number : inert_base {
    constexpr operator long long() const { return 0; }  // NOLINT(google-explicit-constructor): a count is a number
};

/// In place of a fraction.
struct inert_ratio : inert_base {
    constexpr operator ratio() const { return {}; }  // NOLINT(google-explicit-constructor): a count is a number
    constexpr inert_number num() const { return {}; }
    constexpr inert_number den() const { return {}; }
    constexpr inert_number value() const { return {}; }
};

template <class A, class B>
concept one_inert = std::derived_from<A, inert_base> || std::derived_from<B, inert_base>;

// clang-format off
template <class A, class B> requires one_inert<A, B> constexpr bool operator==(const A&, const B&) { return true; }
template <class A, class B> requires one_inert<A, B> constexpr bool operator!=(const A&, const B&) { return true; }
template <class A, class B> requires one_inert<A, B> constexpr bool operator<(const A&, const B&) { return true; }
template <class A, class B> requires one_inert<A, B> constexpr bool operator>(const A&, const B&) { return true; }
template <class A, class B> requires one_inert<A, B> constexpr bool operator<=(const A&, const B&) { return true; }
template <class A, class B> requires one_inert<A, B> constexpr bool operator>=(const A&, const B&) { return true; }
template <class A, class B> requires one_inert<A, B> constexpr inert_number operator+(const A&, const B&) { return {}; }
template <class A, class B> requires one_inert<A, B> constexpr inert_number operator-(const A&, const B&) { return {}; }
template <class A, class B> requires one_inert<A, B> constexpr inert_number operator*(const A&, const B&) { return {}; }
template <class A, class B> requires one_inert<A, B> constexpr inert_number operator/(const A&, const B&) { return {}; }
// clang-format on

}  // namespace sdepth::inline v0::detail
