// SPDX-License-Identifier: MIT
// Linear attention, with a forget gate or without. Rank 2.
#pragma once

#include <string_view>

#include "sdepth/choices.hpp"
#include "sdepth/layer.hpp"
#include "sdepth/layers/block.hpp"
#include "sdepth/layers/recurrence.hpp"

namespace sdepth::inline v0 {

struct linear_attention_policy {
    long long heads = 0;      ///< 0 = the model's query heads
    long long key_dim = 0;    ///< 0 = the model's head width
    long long value_dim = 0;  ///< 0 = the model's head width
    feature_map map = feature_map::elu_plus_one;
    bool gated = true;      ///< a learned forget gate a head, from the input
    double epsilon = 1e-6;  ///< of the denominator

    friend constexpr bool operator==(const linear_attention_policy&, const linear_attention_policy&) = default;
};

/// S = l S + f(k) v', z = l z + f(k), y = f(q)' S / (f(q)' z + eps). Source: Katharopoulos et al. 2020, gate as in Yang
/// et al. 2024.
template <linear_attention_policy P = linear_attention_policy{}>
struct LinearAttention {
    static constexpr linear_attention_policy policy = P;
    static constexpr std::string_view name = "linear attention";
    static constexpr bool causal = true;

    static constexpr long long heads(const Dims& d) { return policy.heads == 0 ? d.heads : policy.heads; }
    static constexpr long long key_dim(const Dims& d) { return policy.key_dim == 0 ? d.head_dim : policy.key_dim; }
    static constexpr long long value_dim(const Dims& d) {
        return policy.value_dim == 0 ? d.head_dim : policy.value_dim;
    }

    static constexpr tensor_rows tensors(const Dims& d) {
        const long long keys = heads(d) * key_dim(d);
        const long long values = heads(d) * value_dim(d);
        tensor_rows rows;
        rows.add(matrix("mixer.q_proj.weight", role::query, keys, d.width));
        rows.add(matrix("mixer.k_proj.weight", role::key, keys, d.width));
        rows.add(matrix("mixer.v_proj.weight", role::value, values, d.width));
        if (policy.gated) {
            rows.add(matrix("mixer.g_proj.weight", role::input, heads(d), d.width));
            rows.add(vector("mixer.g_proj.bias", role::bias, heads(d), {init_kind::zeros, 0}));
        }
        rows.add(matrix("mixer.o_proj.weight", role::output, d.width, values));
        return rows;
    }
    static constexpr mixing_work mixing(const Dims& d) {
        return {.per_row = heads(d) * key_dim(d) * (2 * value_dim(d) + 1)};
    }
    static constexpr state_size state(const Dims& d) {
        return {.recurrent = heads(d) * key_dim(d) * (value_dim(d) + 1)};
    }
    static constexpr verdict check(const Dims& d) {
        using detail::require_size;
        return detail::first_broken(require_size(heads(d), size_name::heads),
                                    require_size(key_dim(d), size_name::key_dim),
                                    require_size(value_dim(d), size_name::value_dim),
                                    detail::require_choice(policy_name::map, policy.map, feature_map::exponential),
                                    detail::require_positive(policy_name::epsilon, policy.epsilon));
    }

    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        sink.function("heads", heads(d));
        sink.function("key width", key_dim(d));
        sink.function("value width", value_dim(d));
        sink.function("feature map", name_of(policy.map));
        sink.function("forget gate", policy.gated);
        sink.function("denominator epsilon", policy.epsilon);
        sink.function("convolution", "none");
        detail::describe_reset(sink);
    }
};

inline constexpr Block<LinearAttention<>, SwiGLU<>> linear_attention{};

}  // namespace sdepth::inline v0
