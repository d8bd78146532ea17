// SPDX-License-Identifier: MIT
// A formula read as data: which layer kinds it has, and the runs of equal layers in order of execution. Rank 1.
//
// The kinds are types and few; the runs are plain numbers, so depth costs array elements and never instantiations.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include "sdepth/pattern.hpp"

namespace sdepth::inline v0 {

/// Equal layers that follow each other.
struct layer_run {
    int kind = 0;         ///< position in `runs_of<P>::kinds`
    long long first = 0;  ///< number of its first layer, from 0
    long long times = 0;  ///< layers in the run
    int weights = 0;      ///< the run that owns the weights: itself, or an earlier pass of a loop

    friend constexpr bool operator==(const layer_run&, const layer_run&) = default;
};

namespace detail {

template <class P>
struct leaves {
    using type = type_list<P>;
};
template <class... Lists>
struct joined_lists;
template <class... As>
struct joined_lists<type_list<As...>> {
    using type = type_list<As...>;
};
template <class... As, class... Bs, class... Rest>
struct joined_lists<type_list<As...>, type_list<Bs...>, Rest...> : joined_lists<type_list<As..., Bs...>, Rest...> {};
template <class... Items>
struct leaves<Stack<Items...>> : joined_lists<type_list<>, typename leaves<Items>::type...> {};
template <class P, long long N>
struct leaves<Repeat<P, N>> : leaves<P> {};
template <class P, long long N>
struct leaves<Loop<P, N>> : leaves<P> {};

template <class List>
struct kinds_of;
template <class... Ts>
struct kinds_of<type_list<Ts...>> : unique_types<Ts...> {};

// What the walk over a formula needs of each node: how many runs it makes, and the runs themselves.
template <class P>
struct node {
    static constexpr bool leaf = true;
    static constexpr count runs() { return 1; }
    template <class Kinds, class Out>
    static constexpr void append(Out& out, long long times = 1) {
        out.push(index_of<P>(Kinds{}), times);
    }
};

template <class... Items>
struct node<Stack<Items...>> {
    static constexpr bool leaf = false;
    static constexpr count runs() { return (count(0) + ... + node<Items>::runs()); }
    template <class Kinds, class Out>
    static constexpr void append(Out& out) {
        (node<Items>::template append<Kinds>(out), ...);
    }
};

template <class P, long long N>
struct node<Repeat<P, N>> {
    static constexpr bool leaf = false;
    static constexpr count runs() { return N < 1 ? count(1) : node<P>::leaf ? count(1) : count(N) * node<P>::runs(); }
    template <class Kinds, class Out>
    static constexpr void append(Out& out) {
        if constexpr (N < 1) {
            out.push(-1, N);  // the check reports it
        } else if constexpr (node<P>::leaf) {
            node<P>::template append<Kinds>(out, N);
        } else {
            for (long long i = 0; i < N; ++i) node<P>::template append<Kinds>(out);
        }
    }
};

template <class P, long long N>
struct node<Loop<P, N>> {
    static constexpr bool leaf = false;
    static constexpr count runs() { return N < 1 ? count(1) : count(N) * node<P>::runs(); }
    template <class Kinds, class Out>
    static constexpr void append(Out& out) {
        if constexpr (N < 1) {
            out.push(-1, N);
        } else {
            const int begin = out.filled;
            node<P>::template append<Kinds>(out);
            const int length = out.filled - begin;
            for (long long pass = 1; pass < N; ++pass) {
                node<P>::template append<Kinds>(out);
                for (int i = 0; i < length; ++i) out.share(out.filled - length + i, begin + i);
            }
        }
    }
};

}  // namespace detail

/// The runs of formula type P, with or without const and reference.
template <class P>
struct runs_of {
    /// A formula that unrolls to more runs than this is refused (`rule::too_many_runs`): as many as every compiler can
    /// walk within its default step limit.
    static constexpr long long largest = 1 << 13;

    using kinds = typename detail::kinds_of<typename detail::leaves<P>::type>::type;
    static constexpr long long size = detail::node<P>::runs().value();
    static constexpr bool too_many = size > largest;

  private:
    struct sequence {
        std::array<layer_run, static_cast<std::size_t>(too_many ? 1 : size)> items{};
        int filled = 0;
        long long depth = 0;

        constexpr void push(int kind, long long times) {
            items[static_cast<std::size_t>(filled)] = {kind, depth, times, filled};
            depth = (count(depth) + count(times < 0 ? 0 : times)).value();
            ++filled;
        }
        constexpr void share(int pass, int owner) {
            items[static_cast<std::size_t>(pass)].weights = items[static_cast<std::size_t>(owner)].weights;
        }
    };
    static constexpr sequence unrolled() {
        sequence out;
        if constexpr (!too_many) detail::node<P>::template append<kinds>(out);
        return out;
    }
    static constexpr sequence walked = unrolled();

  public:
    /// In order of execution; `first` counts layers as people do, but from 0.
    static constexpr const auto& runs = walked.items;
    /// Items of the formula, every repetition and pass counted.
    static constexpr long long layers = walked.depth;

    // Last, for clang 14 gives a class no members behind an assertion that fails.
    static_assert(pattern<P>, "sdepth: only formulas have runs: write runs_of<decltype(formula)>");
};
template <class P>
requires(!std::is_same_v<P, std::remove_cvref_t<P>>) struct runs_of<P> : runs_of<std::remove_cvref_t<P>> {
};

}  // namespace sdepth::inline v0
