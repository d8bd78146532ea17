// SPDX-License-Identifier: MIT
// Parameters of a model, each count exact, constexpr and named by its convention: sums over what the tensor rows of one
// layer of each kind say. Rank 4.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <type_traits>

#include "sdepth/inert.hpp"
#include "sdepth/layer_counts.hpp"
#include "sdepth/model.hpp"

namespace sdepth::inline v0 {

/// Parameter counts; docs/notation.md says what each leaves out.
struct param_counts {
    long long total = 0;  ///< every trained number
    long long state = 0;  ///< untrained numbers that the model file keeps (tracked cuts, expert biases)
    long long paper = 0;  ///< matrices only: no norms, router vectors of sparse layers, scales, biases (X-MoD paper)
    ratio active{};       ///< total with sparse layers x 1/K and routed experts x k/E
    std::array<long long, role_count> by_role{};

    /// Numbers in a model file without an optimiser section.
    constexpr long long file_elements() const { return total + state; }
    /// Every number, trained or not, of one role.
    constexpr long long of(role r) const { return by_role[static_cast<std::size_t>(r)]; }
};

namespace detail {

struct inert_param_counts {
    inert_number total{}, state{}, paper{};
    inert_ratio active{};
    inert_list<inert_number> by_role{};
    constexpr inert_number file_elements() const { return {}; }
    constexpr inert_number of(role) const { return {}; }
    constexpr operator param_counts() const { return {}; }  // NOLINT(google-explicit-constructor): as its numbers
};

constexpr bool is_matrix(const tensor_row& row) {
    return row.use == role::embedding || (row.scope != row_scope::none && row.use != role::router);
}

// Sums over tensors, of one layer or of a model.
struct tensor_sums {
    count total, state, paper;
    ratio active{};
    std::array<count, role_count> by_role{};

    constexpr void add(const tensor_rows& rows) {
        for (const tensor_row& row : rows) {
            const count elements = row.elements();
            (row.trained ? total : state) += elements;
            if (is_matrix(row)) paper += elements;
            if (row.trained) active += row.active * ratio(elements);
            by_role[static_cast<std::size_t>(row.use)] += elements;
        }
    }
    constexpr void add(const tensor_sums& layer, count times) {
        total += layer.total * times;
        state += layer.state * times;
        paper += layer.paper * times;
        active += layer.active * ratio(times);
        for (std::size_t i = 0; i < by_role.size(); ++i) by_role[i] += layer.by_role[i] * times;
    }
};

template <class M>
constexpr param_counts count_params() {
    param_counts params;
    const auto layers = for_each_kind<tensor_sums>(typename M::kinds{}, []<class L>(std::type_identity<L>) {
        tensor_sums sum;
        sum.add(L::tensors(M::dims));
        return sum;
    });
    tensor_sums sum;
    sum.add(Ends::first(M::dims));
    for (std::size_t kind = 0; kind < layers.size(); ++kind) sum.add(layers[kind], owners_by_kind<M>[kind]);
    sum.add(Ends::last(M::dims));

    params.total = sum.total.value();
    params.state = sum.state.value();
    params.paper = sum.paper.value();
    params.active = sum.active;
    for (std::size_t i = 0; i < role_count; ++i) params.by_role[i] = sum.by_role[i].value();
    return params;
}

template <class M>
constexpr auto count_params_if_valid() {
    if constexpr (countable<M>()) {
        constexpr param_counts sum = count_params<M>();  // `counts_fit` bounds it all, but not the denominator
        constexpr verdict v = shares_verdict<M>(!sum.active.overflowed());
        if constexpr (accepted<v.broken, v.a, v.b>()) {
            return sum;
        } else {
            return inert_param_counts{};
        }
    } else {
        return inert_param_counts{};
    }
}

}  // namespace detail

/// Parameters of model M.
template <class M>
inline constexpr auto params = detail::count_params_if_valid<M>();

namespace detail {

/// Whether these counts are real: the model broke no rule, and they fit.
template <class M>
inline constexpr bool has_params = std::same_as<std::remove_cvref_t<decltype(params<M>)>, param_counts>;

}  // namespace detail

}  // namespace sdepth::inline v0
