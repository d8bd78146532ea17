// SPDX-License-Identifier: MIT
// The pattern language: layers joined by + and repeated by * in run-length form. Knows no layer; what is joined or
// repeated wrongly meets `slips.hpp`. Rank 1.
//
//     a + b         a, then b             Stack<a, b>
//     a * 4_c       four layers a         Repeat<a, 4>, one type however large the count
//     loop<2>(a)    a twice, one set of weights
//
// A formula has one normal form: stacks are flat, equal neighbours are one run, a repeat of a repeat is one repeat.
#pragma once

#include <boost/hana/integral_constant.hpp>
#include <boost/hana/minus.hpp>
#include <boost/hana/mult.hpp>
#include <boost/hana/plus.hpp>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

#include "sdepth/numbers.hpp"
#include "sdepth/type_list.hpp"

namespace sdepth::inline v0 {

/// Base of everything that can stand in a formula; it lets argument-dependent lookup find + and *.
struct pattern_base {};

/// Base of every layer, ours and the user's, with the members that most layers leave as they are. `layer.hpp` lists
/// those that a layer needs.
struct layer_base : pattern_base {
    static constexpr bool waits_for_anchor = false;
    static constexpr bool chooses_by_document = false;
};

template <class T>
concept pattern = std::derived_from<std::remove_cvref_t<T>, pattern_base>;

/// Items one after another.
template <class... Items>
struct Stack : pattern_base {};

/// N copies of an item, each with weights of its own.
template <class Item, long long N>
struct Repeat : pattern_base {};

/// N passes through an item with one set of weights (looped blocks).
template <class Item, long long N>
struct Loop : pattern_base {};

/// In place of a formula that could not be made and whose error is reported already. It stays what it is under +, *,
/// `loop` and `sparse`, and a model of it is inert: no assertion behind the error adds another.
struct broken_formula : pattern_base {};

namespace detail {

template <class P>
struct as_stack {
    using type = Stack<P>;
};
template <class... Items>
struct as_stack<Stack<Items...>> {
    using type = Stack<Items...>;
};

template <class P>
struct run_of {
    using item = P;
    static constexpr long long times = 1;
};
template <class P, long long N>
struct run_of<Repeat<P, N>> {
    using item = P;
    static constexpr long long times = N;
};

template <class P, long long N>
struct repeated {
    using type = Repeat<P, N>;
};
template <class P>
struct repeated<P, 1> {
    using type = P;
};
template <class P, long long M, long long N>
struct repeated<Repeat<P, M>, N> {
    // A factor below one stays visible to the check, whatever the other is.
    using type = Repeat < P, M < 1 ? M : N<1 ? N : (count(M) * count(N)).value()>;
};
template <class P, long long M>
struct repeated<Repeat<P, M>, 1> {
    using type = Repeat<P, M>;
};
template <long long N>
struct repeated<broken_formula, N> {
    using type = broken_formula;
};
template <>
struct repeated<broken_formula, 1> {
    using type = broken_formula;
};

template <class A, class B>
struct joined;
template <class... As, class B, class... Bs>
struct joined<Stack<As...>, Stack<B, Bs...>> {
    using last = run_of<nth<sizeof...(As) - 1, As...>>;
    using first = run_of<B>;

    template <std::size_t... Is>
    static auto merge(std::index_sequence<Is...>)
        -> Stack<nth<Is, As...>..., Repeat<typename first::item, (count(last::times) + count(first::times)).value()>,
                 Bs...>;

    static auto select() {
        if constexpr (std::is_same_v<typename last::item, typename first::item> && last::times >= 1 &&
                      first::times >= 1) {
            return std::type_identity<decltype(merge(std::make_index_sequence<sizeof...(As) - 1>{}))>{};
        } else {
            return std::type_identity<Stack<As..., B, Bs...>>{};
        }
    }
    using type = typename decltype(select())::type;
};

// A stack of one item is that item.
template <class P>
struct unwrapped {
    using type = P;
};
template <class P>
struct unwrapped<Stack<P>> {
    using type = P;
};

template <class... Ps>
concept any_broken = (std::same_as<Ps, broken_formula> || ...);

}  // namespace detail

template <pattern A, pattern B>
constexpr auto operator+(A, B) {
    if constexpr (detail::any_broken<A, B>) {
        return broken_formula{};
    } else {
        using stack =
            typename detail::joined<typename detail::as_stack<A>::type, typename detail::as_stack<B>::type>::type;
        return typename detail::unwrapped<stack>::type{};
    }
}

// This exact form, by value with a template template parameter, is the one that coexists with Hana's own operator*.
template <pattern P, template <class T, T> class Constant, class T, T N>
constexpr auto operator*(P, Constant<T, N>) {
    return typename detail::repeated<P, static_cast<long long>(N)>::type{};
}
template <pattern P, template <class T, T> class Constant, class T, T N>
constexpr auto operator*(Constant<T, N>, P) {
    return typename detail::repeated<P, static_cast<long long>(N)>::type{};
}

namespace detail {

/// What `loop<N>(arguments)` gives when they are not one formula; in `slips.hpp`.
template <class... Ts>
constexpr broken_formula wrong_loop_argument();

}  // namespace detail

/// The type of `loop<N>`; the loop of a formula is a `Loop`.
template <long long N>
struct LoopOf {
    template <pattern P>
    constexpr auto operator()(P) const {
        return std::conditional_t<detail::any_broken<P>, broken_formula, Loop<P, N>>{};
    }
    template <class... Ts>
    constexpr broken_formula operator()(Ts...) const {
        return detail::wrong_loop_argument<Ts...>();
    }
};

/// N passes through a formula with one set of weights: parameters count once, work and state N times.
template <long long N>
inline constexpr LoopOf<N> loop{};

namespace detail {

/// The number of a literal, decimal or behind 0x or 0b; -1 for anything else, octal numbers and overflow included.
constexpr long long literal_value(std::string_view text) {
    const bool hexadecimal = text.starts_with("0x") || text.starts_with("0X");
    const bool binary = text.starts_with("0b") || text.starts_with("0B");
    const int base = hexadecimal ? 16 : binary ? 2 : 10;
    if (base != 10) text.remove_prefix(2);
    if (base == 10 && text.size() > 1 && text.front() == '0') return -1;
    count value;
    for (const char c : text) {
        if (c == '\'') continue;
        const int digit = c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10;
        if (digit < 0 || digit >= base) return -1;
        value = value * count(base) + count(digit);
    }
    return value.overflowed() ? -1 : value.value();
}

/// What a literal that is no whole number gives; in `slips.hpp`.
template <char... Digits>
constexpr broken_formula wrong_literal();

}  // namespace detail

namespace literals {

/// `4_c`, an integral constant of Boost.Hana. Not by Hana's own literal, which takes the point of 4.0 for a digit and
/// counts 380; the constraint lets this one be chosen where both are in force.
template <char... Digits>
requires(sizeof...(Digits) > 0) constexpr auto operator""_c() {
    constexpr char text[] = {Digits...};
    constexpr long long value = detail::literal_value({text, sizeof...(Digits)});
    if constexpr (value < 0) {
        return detail::wrong_literal<Digits...>();
    } else {
        return boost::hana::llong<value>{};
    }
}

}  // namespace literals

}  // namespace sdepth::inline v0
