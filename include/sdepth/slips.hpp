// SPDX-License-Identifier: MIT
// What a formula with a slip in its spelling meets: overloads of +, *, `loop` and `sparse` that report one error, which
// says what to write, and give a `broken_formula`, so that nothing fails after it. Rank 1.
#pragma once

#include <concepts>
#include <string_view>
#include <type_traits>

#include "sdepth/layer.hpp"
#include "sdepth/pattern.hpp"

namespace sdepth::inline v0 {

struct None;  // of `layers/ffn.hpp`

namespace detail {

template <class T>
struct is_constant : std::false_type {};
template <template <class T, T> class Constant, class T, T N>
struct is_constant<Constant<T, N>> : std::true_type {};
/// `4_c`, `std::integral_constant`.
template <class T>
concept constant = is_constant<T>::value;

template <class T>
concept part_members = requires(Dims d) {
    std::string_view(T::name);
    { T::tensors(d) } -> std::same_as<tensor_rows>;
};
template <class T>
concept layer_members = requires {
    bool(T::has_mixer);
};
/// A mixer or a feed-forward part, by its members.
template <class T>
concept part = std::is_class_v<T> && !pattern<T> && part_members<T> && !layer_members<T>;

template <class T>
inline constexpr bool is_loop = false;
template <long long N>
inline constexpr bool is_loop<LoopOf<N>> = true;

template <class T>
concept has_value = requires {
    T::value;
};
// What a user repeats in place of a layer. Narrow, for every type multiplied by a constant passes here.
template <class T>
concept stray = std::is_empty_v<T> && !pattern<T> && !has_value<T>;

}  // namespace detail

namespace explain {

template <class Type, detail::layer_member lacking>
constexpr void not_a_layer() {
    if constexpr (lacking == detail::layer_member::layer_base) {
        static_assert(std::derived_from<Type, layer_base>,
                      "sdepth: not a layer: derive the type named here publicly from sdepth::layer_base");
    } else {
        static_assert(std::derived_from<Type, layer_base>,
                      "sdepth: not a layer: derive the type publicly from layer_base and add the member named here");
    }
}
template <class Mixer>
constexpr void mixer_alone() {
    static_assert(std::derived_from<Mixer, layer_base>,
                  "sdepth: a mixer alone is not a layer: write layer<Mixer, None>, as attention_only does");
}
template <class Ffn>
constexpr void ffn_alone() {
    static_assert(std::derived_from<Ffn, layer_base>,
                  "sdepth: a feed-forward part alone is not a layer: write layer<None, Ffn>, as ffn_only does");
}
template <class Part>
constexpr void none_alone() {
    static_assert(std::derived_from<Part, layer_base>,
                  "sdepth: None is the empty part of layer<Mixer, Ffn>, not a layer: leave the term out");
}
template <class Count>
constexpr void repeat_count_is_a_constant() {
    static_assert(detail::constant<Count>,
                  "sdepth: the count of a repeat is a compile-time constant: write dense * 4_c");
}
template <char... literal>
constexpr void repeat_count_is_whole() {
    static_assert(sizeof...(literal) == 0,
                  "sdepth: a count is a whole number below 2^63 - 1: write 4_c, decimal or behind 0x or 0b");
}
template <class Addend>
constexpr void only_layers_add_up() {
    static_assert(pattern<Addend>, "sdepth: only layers and formulas add up: write + dense, or * 3_c to repeat");
}
template <class Factor>
constexpr void formulas_do_not_multiply() {
    static_assert(detail::constant<Factor>, "sdepth: formulas do not multiply: write a + b, or a * 4_c to repeat a");
}
template <class... Operands>
constexpr void formulas_add_and_repeat() {
    static_assert(sizeof...(Operands) == 0, "sdepth: formulas know + and * alone: write a + b, a * 4_c or loop<2>(a)");
}
template <class... Arguments>
constexpr void loop_takes_a_formula() {
    static_assert(sizeof...(Arguments) == 1 && (pattern<Arguments> && ...),
                  "sdepth: a loop takes a formula: write loop<2>(dense * 4_c), the passes in < >");
}
template <class Layer>
constexpr void layer_wraps_no_other() {
    static_assert(!pattern<Layer>,
                  "sdepth: this layer wraps no other: sparse<4>(a) does; choose the parts of one by layer<Mixer, Ffn>");
}
template <class... Arguments>
constexpr void sparse_wraps_one_layer() {
    static_assert(sizeof...(Arguments) == 1 && (std::derived_from<Arguments, layer_base> && ...),
                  "sdepth: sparse wraps one layer: write sparse<4>(a) + sparse<4>(b), or sparse<4>(a) * 2_c");
}

}  // namespace explain

namespace detail {

/// Reports that T, a class, is no layer.
template <class T>
constexpr void report_no_layer() {
    if constexpr (is_loop<T>) {
        explain::loop_takes_a_formula<T>();
    } else if constexpr (std::is_same_v<T, None>) {
        explain::none_alone<T>();
    } else if constexpr (!part<T>) {
        explain::not_a_layer<T, lack_of<T>::member>();
    } else if constexpr (requires(Dims d) { T::mixing(d); }) {
        explain::mixer_alone<T>();
    } else {
        explain::ffn_alone<T>();
    }
}

template <class T>
concept no_layer = std::is_class_v<T> && !pattern<T> && !constant<T>;

template <class T>
constexpr void report_addend() {
    if constexpr (no_layer<T>) {
        report_no_layer<T>();
    } else {
        explain::only_layers_add_up<T>();
    }
}

/// Reports what multiplies a formula, or a part that is none.
template <class A, class B>
constexpr void report_factors() {
    if constexpr (!pattern<A> && !pattern<B>) {
        report_no_layer<std::conditional_t<part<A>, A, B>>();
    } else {
        using factor = std::conditional_t<pattern<A>, B, A>;
        if constexpr (pattern<factor> || part<factor>) {
            explain::formulas_do_not_multiply<factor>();
        } else {
            explain::repeat_count_is_a_constant<factor>();
        }
    }
}

template <class... Ts>
constexpr broken_formula no_such_operator() {
    if constexpr (!any_broken<Ts...>) explain::formulas_add_and_repeat<Ts...>();
    return {};
}

template <class... Ts>
concept with_formula = ((pattern<Ts> || part<Ts>) || ...);
/// Of operators that Hana has for its constants, those with a constant stand apart.
template <class... Ts>
concept about_formulas = !(constant<Ts> || ...) && with_formula<Ts...>;

}  // namespace detail

template <class A, class B>
requires(detail::about_formulas<A, B> && !(pattern<A> && pattern<B>)) constexpr broken_formula operator+(A, B) {
    if constexpr (!detail::any_broken<A, B>) detail::report_addend<std::conditional_t<pattern<A>, B, A>>();
    return {};
}
template <class A, class B>
requires detail::about_formulas<A, B>
constexpr broken_formula operator*(A, B) {
    if constexpr (!detail::any_broken<A, B>) detail::report_factors<A, B>();
    return {};
}

// With a constant, only this form is chosen before Hana's own operators (`pattern.hpp`).
template <pattern P, template <class T, T> class Constant, class T, T N>
constexpr broken_formula operator+(P, Constant<T, N>) {
    if constexpr (!detail::any_broken<P>) explain::only_layers_add_up<Constant<T, N>>();
    return {};
}
template <pattern P, template <class T, T> class Constant, class T, T N>
constexpr broken_formula operator+(Constant<T, N>, P) {
    if constexpr (!detail::any_broken<P>) explain::only_layers_add_up<Constant<T, N>>();
    return {};
}
template <detail::stray X, template <class T, T> class Constant, class T, T N>
constexpr broken_formula operator*(X, Constant<T, N>) {
    detail::report_no_layer<X>();
    return {};
}
template <detail::stray X, template <class T, T> class Constant, class T, T N>
constexpr broken_formula operator*(Constant<T, N>, X) {
    detail::report_no_layer<X>();
    return {};
}

// The operators that formulas do not have. Hana has - / % && || of a constant and anything.
// clang-format off
template <class A, class B> requires detail::about_formulas<A, B>
constexpr broken_formula operator-(const A&, const B&) { return detail::no_such_operator<A, B>(); }
template <class A, class B> requires detail::about_formulas<A, B>
constexpr broken_formula operator/(const A&, const B&) { return detail::no_such_operator<A, B>(); }
template <class A, class B> requires detail::about_formulas<A, B>
constexpr broken_formula operator%(const A&, const B&) { return detail::no_such_operator<A, B>(); }
template <class A, class B> requires detail::with_formula<A, B>
constexpr broken_formula operator|(const A&, const B&) { return detail::no_such_operator<A, B>(); }
template <class A, class B> requires detail::with_formula<A, B>
constexpr broken_formula operator^(const A&, const B&) { return detail::no_such_operator<A, B>(); }
template <class A, class B> requires detail::with_formula<A, B>
constexpr broken_formula operator&(const A&, const B&) { return detail::no_such_operator<A, B>(); }
template <class A, class B> requires detail::with_formula<A, B>
constexpr broken_formula operator<<(const A&, const B&) { return detail::no_such_operator<A, B>(); }
template <class A, class B> requires detail::with_formula<A, B>
constexpr broken_formula operator>>(const A&, const B&) { return detail::no_such_operator<A, B>(); }
template <class A, class B> requires detail::about_formulas<A, B>
constexpr broken_formula operator&&(const A&, const B&) { return detail::no_such_operator<A, B>(); }
template <class A, class B> requires detail::about_formulas<A, B>
constexpr broken_formula operator||(const A&, const B&) { return detail::no_such_operator<A, B>(); }
template <class A, class B> requires detail::with_formula<A, B>
constexpr broken_formula operator+=(const A&, const B&) { return detail::no_such_operator<A, B>(); }
template <class A, class B> requires detail::with_formula<A, B>
constexpr broken_formula operator*=(const A&, const B&) { return detail::no_such_operator<A, B>(); }
template <class A, class B> requires detail::with_formula<A, B>
constexpr broken_formula operator-=(const A&, const B&) { return detail::no_such_operator<A, B>(); }
template <class A, class B> requires detail::with_formula<A, B>
constexpr broken_formula operator/=(const A&, const B&) { return detail::no_such_operator<A, B>(); }
template <class A, class B> requires detail::with_formula<A, B>
constexpr broken_formula operator%=(const A&, const B&) { return detail::no_such_operator<A, B>(); }
template <pattern P, template <class T, T> class Constant, class T, T N>
constexpr broken_formula operator-(P, Constant<T, N>) { return detail::no_such_operator<P>(); }
template <pattern P, template <class T, T> class Constant, class T, T N>
constexpr broken_formula operator-(Constant<T, N>, P) { return detail::no_such_operator<P>(); }
template <pattern P, template <class T, T> class Constant, class T, T N>
constexpr broken_formula operator/(P, Constant<T, N>) { return detail::no_such_operator<P>(); }
template <pattern P, template <class T, T> class Constant, class T, T N>
constexpr broken_formula operator/(Constant<T, N>, P) { return detail::no_such_operator<P>(); }
template <pattern P, template <class T, T> class Constant, class T, T N>
constexpr broken_formula operator%(P, Constant<T, N>) { return detail::no_such_operator<P>(); }
template <pattern P, template <class T, T> class Constant, class T, T N>
constexpr broken_formula operator%(Constant<T, N>, P) { return detail::no_such_operator<P>(); }
template <pattern P, template <class T, T> class Constant, class T, T N>
constexpr broken_formula operator&&(P, Constant<T, N>) { return detail::no_such_operator<P>(); }
template <pattern P, template <class T, T> class Constant, class T, T N>
constexpr broken_formula operator&&(Constant<T, N>, P) { return detail::no_such_operator<P>(); }
template <pattern P, template <class T, T> class Constant, class T, T N>
constexpr broken_formula operator||(P, Constant<T, N>) { return detail::no_such_operator<P>(); }
template <pattern P, template <class T, T> class Constant, class T, T N>
constexpr broken_formula operator||(Constant<T, N>, P) { return detail::no_such_operator<P>(); }
template <pattern P> constexpr broken_formula operator-(P) { return detail::no_such_operator<P>(); }
template <pattern P> constexpr broken_formula operator+(P) { return detail::no_such_operator<P>(); }
template <pattern P> constexpr broken_formula operator~(P) { return detail::no_such_operator<P>(); }
template <pattern P> constexpr broken_formula operator!(P) { return detail::no_such_operator<P>(); }
// clang-format on

namespace detail {

template <char... Digits>
constexpr broken_formula wrong_literal() {
    explain::repeat_count_is_whole<Digits...>();
    return {};
}

template <class... Ts>
constexpr broken_formula wrong_loop_argument() {
    if constexpr (sizeof...(Ts) == 1 && (no_layer<Ts> && ...)) {
        (report_no_layer<Ts>(), ...);
    } else if constexpr (!any_broken<Ts...>) {
        explain::loop_takes_a_formula<Ts...>();
    }
    return {};
}

/// What `sparse<K>(arguments)` gives when they are not one layer.
template <class... Ts>
constexpr broken_formula wrong_inner_layer() {
    if constexpr (sizeof...(Ts) == 1 && (no_layer<Ts> && ...)) {
        (report_no_layer<Ts>(), ...);
    } else if constexpr (!any_broken<Ts...>) {
        explain::sparse_wraps_one_layer<Ts...>();
    }
    return {};
}

/// What `moe<4, 2>(arguments)` gives.
template <class Layer, class... Ts>
constexpr broken_formula wrapped_by_a_block() {
    if constexpr (!any_broken<Ts...>) explain::layer_wraps_no_other<Layer>();
    return {};
}

}  // namespace detail

}  // namespace sdepth::inline v0
