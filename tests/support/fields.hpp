// SPDX-License-Identifier: MIT
// Just enough reflection for tests to notice a new field of an aggregate or a new enumerator.
#pragma once

#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

namespace sdepth_test {

struct any_value {
    template <class T>
    constexpr operator T() const;  // NOLINT(google-explicit-constructor): stands for a value of any type
};

/// Fields of an aggregate without nested aggregates: the most values that its braces take.
template <class T, class... Values>
constexpr int field_count() {
    if constexpr (requires { T{Values{}..., any_value{}}; }) {
        return field_count<T, Values..., any_value>();
    } else {
        return static_cast<int>(sizeof...(Values));
    }
}

template <auto value>
constexpr bool is_enumerator() {
    constexpr std::string_view name = __PRETTY_FUNCTION__;  // "... value = E::name ..." or "... value = (E)7 ..."
    return name.find("value = (") == std::string_view::npos;
}

/// Enumerators of an enumeration that counts from 0.
template <class E, int known = 0>
constexpr int enumerator_count() {
    if constexpr (is_enumerator<static_cast<E>(known)>()) {
        return enumerator_count<E, known + 1>();
    } else {
        return known;
    }
}

template <auto value>
struct constant {};

/// Pointers to different members.
template <auto... Members>
struct fields {
    static constexpr int size = sizeof...(Members);
    template <auto Member>
    static constexpr int count = (0 + ... + (std::is_same_v<constant<Member>, constant<Members>> ? 1 : 0));
    static_assert((true && ... && (count<Members> == 1)), "a member is listed twice");
};

/// How many other values of a field are tried: all of an enumeration, else one.
template <auto base, auto member>
constexpr int variant_count() {
    using field = std::remove_cvref_t<decltype(base.*member)>;
    if constexpr (std::is_enum_v<field>) {
        return enumerator_count<field>() - 1;
    } else {
        return 1;
    }
}

/// `base` with another value of one field.
template <auto base, auto member, int step>
constexpr auto changed() {
    auto changed = base;
    auto& field = changed.*member;
    using type = std::remove_cvref_t<decltype(field)>;
    if constexpr (std::is_enum_v<type>) {
        field = static_cast<type>((static_cast<int>(field) + step) % enumerator_count<type>());
    } else if constexpr (std::is_same_v<type, bool>) {
        field = !field;
    } else {
        field += step;
    }
    return changed;
}

}  // namespace sdepth_test
