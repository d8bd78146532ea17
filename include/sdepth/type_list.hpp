// SPDX-License-Identifier: MIT
// A list of types and the few questions the library asks of one; by pack expansion, never by recursion. Rank 0.
#pragma once

#include <cstddef>
#include <type_traits>
#include <utility>

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

template <class... Ts>
struct type_list {
    static constexpr int size = sizeof...(Ts);
};

namespace detail {

template <std::size_t I, class T>
struct indexed {};

template <class Sequence, class... Ts>
struct indexed_list;
template <std::size_t... Is, class... Ts>
struct indexed_list<std::index_sequence<Is...>, Ts...> : indexed<Is, Ts>... {};

template <std::size_t I, class T>
std::type_identity<T> pick(indexed<I, T>*);

template <std::size_t I, class... Ts>
using nth =
    typename decltype(pick<I>(static_cast<indexed_list<std::index_sequence_for<Ts...>, Ts...>*>(nullptr)))::type;

template <std::size_t I, class List>
struct element;
template <std::size_t I, class... Ts>
struct element<I, type_list<Ts...>> : std::type_identity<nth<I, Ts...>> {};

// list + type: the list with the type at its end, once.
template <class... Ts, class T>
auto operator+(type_list<Ts...>, std::type_identity<T>)
    -> std::conditional_t<(std::is_same_v<T, Ts> || ...), type_list<Ts...>, type_list<Ts..., T>>;

}  // namespace detail

/// The types of a list, each once, in order of first appearance.
template <class... Ts>
struct unique_types {
  private:
    static auto collect() {
        using detail::operator+;
        return decltype((type_list<>{} + ... + std::type_identity<Ts>{})){};
    }

  public:
    using type = decltype(collect());
};

/// Position of T in the list; the list's size if it is not there.
template <class T, class... Ts>
constexpr int index_of(type_list<Ts...>) {
    int index = 0;
    static_cast<void>(((std::is_same_v<T, Ts> ? false : (++index, true)) && ...));
    return index;
}

/// Calls f(std::type_identity<T>{}) for the type at a run-time position; a constexpr `switch` over the list.
template <class... Ts, class F>
constexpr void visit_type(type_list<Ts...>, int index, F&& f) {
    int i = 0;
    static_cast<void>(((i++ == index ? (f(std::type_identity<Ts>{}), true) : false) || ...));
}

}  // namespace sdepth::inline v0
