// SPDX-License-Identifier: MIT
// What is equal between two models and what is not, as exact ratios. Rank 4.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "sdepth/flops.hpp"
#include "sdepth/inert.hpp"
#include "sdepth/layer_counts.hpp"
#include "sdepth/model.hpp"
#include "sdepth/params.hpp"
#include "sdepth/state.hpp"

namespace sdepth::inline v0 {

/// Two models of the same training FLOPs, or of the same tokens. The product of the two ratios is 1.
struct matched_ratios {
    ratio flops;   ///< FLOPs per token, the first over the second; of whole runs at equal tokens
    ratio tokens;  ///< tokens at equal training FLOPs, the first over the second
};

namespace detail {

struct inert_ratios {
    inert_ratio flops, tokens;
    constexpr operator matched_ratios() const { return {}; }  // NOLINT(google-explicit-constructor): as its numbers
};

template <class M, class P, Run R>
struct match {
    static constexpr auto value = [] {
        if constexpr (has_flops<M, evaluated(R)> && has_flops<P, evaluated(R)>) {
            constexpr ratio quotient = flops<M, evaluated(R)>.paper.sequence / flops<P, evaluated(R)>.paper.sequence;
            constexpr ratio inverse = ratio(1) / quotient;
            constexpr verdict v = shares_verdict<M>(!quotient.overflowed() && !inverse.overflowed());
            if constexpr (accepted<v.broken, v.a, v.b>()) {
                return matched_ratios{quotient, inverse};
            } else {
                return inert_ratios{};
            }
        } else {
            return inert_ratios{};
        }
    }();
};

}  // namespace detail

/// phi/phi_D and D/D_D of the X-MoD paper for M against P, forward, in its convention.
template <class M, class P, Run R>
inline constexpr auto matched = detail::match<M, P, detail::evaluated(R)>::value;

/// One quantity of two models.
struct aligned_axis {
    std::string_view name;
    ratio first{};
    ratio second{};

    constexpr bool equal() const { return first == second; }
    /// First over second; 1 if both are 0, `count::largest` if the second alone is.
    constexpr ratio quotient() const {
        if (second == ratio(0)) return first == ratio(0) ? ratio(1) : ratio(count::largest);
        return first / second;
    }
};

/// The seven axes on which a comparison can be unfair, for a pair of models trained with equal FLOPs.
struct alignment_table {
    aligned_axis active;     ///< matrix weights that a token passes
    aligned_axis compute;    ///< training FLOPs per token, 3 x `paper`
    aligned_axis inference;  ///< `forward` FLOPs per token
    aligned_axis kv;         ///< expected bytes of keys and values per token, bf16
    aligned_axis total;      ///< trained parameters
    aligned_axis tokens;     ///< at equal training FLOPs, relative to the second
    aligned_axis depth;      ///< layers one after the other

    constexpr std::array<aligned_axis, 7> axes() const {
        return {active, compute, inference, kv, total, tokens, depth};
    }
};

namespace detail {

// Matrix weights that one token passes, embedding and head included.
template <class M>
constexpr ratio count_active_matrices() {
    const auto of = [](const tensor_rows& rows) {
        ratio sum;
        for (const tensor_row& row : rows) {
            if (is_matrix(row)) sum += row.active * ratio(row.elements());
        }
        return sum;
    };
    const auto layers = for_each_kind<ratio>(typename M::kinds{},
                                             [&]<class L>(std::type_identity<L>) { return of(L::tensors(M::dims)); });
    ratio sum = of(Ends::first(M::dims)) + of(Ends::last(M::dims));
    for (const layer_run& r : M::runs) sum += ratio(r.times) * layers[static_cast<std::size_t>(r.kind)];
    return sum;
}

struct inert_axis {
    std::string_view name;
    inert_ratio first, second;
    constexpr inert_truth equal() const { return {}; }
    constexpr inert_ratio quotient() const { return {}; }
};
struct inert_alignment {
    inert_axis active, compute, inference, kv, total, tokens, depth;
    constexpr std::array<inert_axis, 7> axes() const { return {}; }
    constexpr operator alignment_table() const { return {}; }  // NOLINT(google-explicit-constructor): as its numbers
};

template <class M, Run R>
inline constexpr bool has_counts = has_params<M>&& has_flops<M, R>&& has_state<M, R>;

template <class M1, class M2, Run R>
struct align {
    static constexpr auto value = [] {
        if constexpr (has_counts<M1, evaluated(R)> && has_counts<M2, evaluated(R)>) {
            return alignment_table{{"active parameters", count_active_matrices<M1>(), count_active_matrices<M2>()},
                                   {"training FLOPs per token", ratio(3) * flops<M1, evaluated(R)>.paper.per_token(),
                                    ratio(3) * flops<M2, evaluated(R)>.paper.per_token()},
                                   {"inference FLOPs per token", flops<M1, evaluated(R)>.forward.per_token(),
                                    flops<M2, evaluated(R)>.forward.per_token()},
                                   {"key and value bytes per token", state<M1, evaluated(R)>.kv_expected / ratio(R.seq),
                                    state<M2, evaluated(R)>.kv_expected / ratio(R.seq)},
                                   {"total parameters", params<M1>.total, params<M2>.total},
                                   {"tokens at equal training FLOPs", match<M1, M2, evaluated(R)>::value.tokens, 1},
                                   {"layers", M1::layers, M2::layers}};
        } else {
            return inert_alignment{};
        }
    }();
};

}  // namespace detail

/// The table for any two models.
template <class M1, class M2, Run R>
inline constexpr auto alignment = detail::align<M1, M2, detail::evaluated(R)>::value;

}  // namespace sdepth::inline v0
