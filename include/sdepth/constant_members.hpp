// SPDX-License-Identifier: MIT
// Whether constants can be made of a layer's members: asked before any is used, or a function that is not constexpr
// would end in the compiler's errors instead of one of ours. Rank 3.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "sdepth/check.hpp"

namespace sdepth::inline v0::detail {

/// The sizes of a model as a type.
template <Dims D>
struct sizes_of {
    static constexpr Dims dims = D;
};

// In a template argument: whether a constant can be made of what is given.
template <class Value>
constexpr bool computed(const Value&) {
    return true;
}
template <class L>
constexpr bool described(const Dims& d) {
    null_sink sink;
    L::describe(sink, d);
    return true;
}

/// The first member of T, which lacks none, that is no constant at the sizes of S, as far as its `check` allows to ask.
template <class S, class T, component_kind kind>
constexpr auto first_inconstant() {
    using enum layer_member;
    constexpr bool is_layer = kind == component_kind::layer;
    constexpr bool mixes = kind != component_kind::ffn;
    if constexpr (!requires { typename std::bool_constant<computed(std::string_view(T::name))>; }) {
        return lack<T, name>{};
    } else if constexpr (is_layer && !requires { typename std::bool_constant<bool(T::has_mixer)>; }) {
        return lack<T, has_mixer>{};
    } else if constexpr (is_layer && !requires { typename std::bool_constant<bool(T::has_ffn)>; }) {
        return lack<T, has_ffn>{};
    } else if constexpr (!requires { typename std::bool_constant<bool(T::causal)>; }) {
        return lack<T, causal>{};
    } else if constexpr (is_layer && !requires { typename std::bool_constant<bool(T::waits_for_anchor)>; }) {
        return lack<T, waits_for_anchor>{};
    } else if constexpr (is_layer && !requires { typename std::bool_constant<bool(T::chooses_by_document)>; }) {
        return lack<T, chooses_by_document>{};
    } else if constexpr (!requires { typename std::bool_constant<T::check(S::dims).ok()>; }) {
        return lack<T, check>{};
    } else if constexpr (!T::check(S::dims).ok() || !check_bounds(S::dims).ok()) {
        return lack<T, none>{};
    } else if constexpr (!requires { typename std::bool_constant<computed(T::tensors(S::dims))>; }) {
        return lack<T, tensors>{};
    } else if constexpr (mixes && !requires { typename std::bool_constant<computed(T::mixing(S::dims))>; }) {
        return lack<T, mixing>{};
    } else if constexpr (mixes && !requires { typename std::bool_constant<computed(T::state(S::dims))>; }) {
        return lack<T, state>{};
    } else if constexpr (!requires { typename std::bool_constant<described<T>(S::dims)>; }) {
        return lack<T, describe>{};
    } else if constexpr (is_layer && names_width<T> &&
                         !requires { typename std::bool_constant<computed(T::width(S::dims))>; }) {
        return lack<T, width>{};
    } else {
        return lack<T, none>{};
    }
}

// Asks the function above, for nvcc 13 comes to no end over its body in a member of a class template.
template <class S>
struct find_inconstant {
    template <class T, component_kind kind>
    constexpr auto operator()(component<T, kind>) const {
        return first_inconstant<S, T, kind>();
    }
};

template <class L, class S>
using inconstant_of = decltype(first_fault(find_inconstant<S>{}, components_of<L>()));

template <class L, class S>
constexpr layer_member inconstant_member() {
    if constexpr (lack_of<L>::member == layer_member::none) {
        return inconstant_of<L, S>::member;
    } else {
        return layer_member::none;  // `check` reports what it lacks
    }
}

/// The first layer of formula type P with a member of which no constant can be made at the sizes of S.
template <class P, class S, class... Ls>
constexpr verdict check_constants(type_list<Ls...>) {
    constexpr std::array<layer_member, sizeof...(Ls)> members = {inconstant_member<Ls, S>()...};
    for (const layer_run& r : runs_of<P>::runs) {
        const layer_member member = members[static_cast<std::size_t>(r.kind)];
        if (member != layer_member::none) {
            return {rule::member_is_constant, r.first + 1, static_cast<long long>(member)};
        }
    }
    return {};
}

}  // namespace sdepth::inline v0::detail
