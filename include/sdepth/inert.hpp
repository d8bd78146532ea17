// SPDX-License-Identifier: MIT
// Stand-ins for the numbers of a model that broke a rule: they agree with whatever they are compared with, so that
// assertions on its counts add no second error to the rule's own. Rank 2.
#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>

#include "sdepth/numbers.hpp"

namespace sdepth::inline v0::detail {

struct inert_base {};

/// In place of a yes or no: both it and its opposite hold.
struct inert_truth : inert_base {
    constexpr operator bool() const { return true; }  // NOLINT(google-explicit-constructor): a comparison is a bool
    constexpr inert_truth operator!() const { return {}; }
};

/// In place of a whole number. As a built-in number, which can be wrong only in its own value, it is 1: a divisor, a
/// length, a size of an array.
struct inert_number : inert_base {
    constexpr operator long long() const { return 1; }  // NOLINT(google-explicit-constructor): a count is a number
};

/// In place of a real number.
struct inert_real : inert_base {
    constexpr operator double() const { return 1; }  // NOLINT(google-explicit-constructor): as above
};

/// In place of a fraction.
struct inert_ratio : inert_base {
    constexpr operator ratio() const { return {1}; }  // NOLINT(google-explicit-constructor): a count is a number
    constexpr inert_number whole() const { return {}; }
    constexpr inert_number rest() const { return {}; }
    constexpr inert_number num() const { return {}; }
    constexpr inert_number den() const { return {}; }
    constexpr inert_real value() const { return {}; }
    constexpr inert_truth overflowed() const { return {}; }
};

/// In place of a list of Elements: without any to walk over, but of every size, and each is a T.
template <class T, class Element = T>
struct inert_list : inert_base {
    constexpr const Element* begin() const { return nullptr; }
    constexpr const Element* end() const { return nullptr; }
    constexpr inert_number size() const { return {}; }
    constexpr inert_truth empty() const { return {}; }
    constexpr T operator[](std::size_t) const { return {}; }
    constexpr T front() const { return {}; }
    constexpr T back() const { return {}; }
};

template <class A, class B>
concept one_inert = (std::derived_from<A, inert_base> || std::derived_from<B, inert_base>)&&!std::is_pointer_v<A> &&
                    !std::is_pointer_v<B>;

template <class A, class B>
using inert_result =
    std::conditional_t<std::derived_from<A, inert_ratio> || std::derived_from<B, inert_ratio> ||
                           std::same_as<A, ratio> || std::same_as<B, ratio>,
                       inert_ratio,
                       std::conditional_t<std::floating_point<A> || std::floating_point<B> ||
                                              std::same_as<A, inert_real> || std::same_as<B, inert_real>,
                                          inert_real, inert_number>>;

// clang-format off
template <class A, class B> requires one_inert<A, B> constexpr inert_truth operator==(const A&, const B&) { return {}; }
template <class A, class B> requires one_inert<A, B> constexpr inert_truth operator!=(const A&, const B&) { return {}; }
template <class A, class B> requires one_inert<A, B> constexpr inert_truth operator<(const A&, const B&) { return {}; }
template <class A, class B> requires one_inert<A, B> constexpr inert_truth operator>(const A&, const B&) { return {}; }
template <class A, class B> requires one_inert<A, B> constexpr inert_truth operator<=(const A&, const B&) { return {}; }
template <class A, class B> requires one_inert<A, B> constexpr inert_truth operator>=(const A&, const B&) { return {}; }
template <class A, class B> requires one_inert<A, B>
constexpr inert_result<A, B> operator+(const A&, const B&) { return {}; }
template <class A, class B> requires one_inert<A, B>
constexpr inert_result<A, B> operator-(const A&, const B&) { return {}; }
template <class A, class B> requires one_inert<A, B>
constexpr inert_result<A, B> operator*(const A&, const B&) { return {}; }
template <class A, class B> requires one_inert<A, B>
constexpr inert_result<A, B> operator/(const A&, const B&) { return {}; }
template <class A, class B> requires one_inert<A, B>
constexpr inert_result<A, B> operator%(const A&, const B&) { return {}; }
// clang-format on

}  // namespace sdepth::inline v0::detail
