// SPDX-License-Identifier: MIT
// Choices that a policy names and an operation executes: one enumeration for both. Those of experts are in
// `layers/expert_policy.hpp`. Rank 1.
#pragma once

#include <string_view>

namespace sdepth::inline v0 {

/// Where RMS normalisation of queries and keys applies.
enum class qk_norm {
    none,
    per_head,   ///< one gain per element of a head (Qwen3)
    full_width  ///< over all heads at once (OLMo 2)
};

constexpr std::string_view name_of(qk_norm kind) {
    constexpr std::string_view names[] = {"none", "per head", "full width"};
    return names[static_cast<int>(kind)];
}

/// Non-linearity of a plain feed-forward part: gelu x Phi(x), relu, silu x sigmoid(x).
enum class activation { gelu, relu, silu };

constexpr std::string_view name_of(activation kind) {
    constexpr std::string_view names[] = {"gelu", "relu", "silu"};
    return names[static_cast<int>(kind)];
}

/// Feature map of linear attention.
enum class feature_map { elu_plus_one, relu, exponential };

constexpr std::string_view name_of(feature_map map) {
    constexpr std::string_view names[] = {"elu + 1", "relu", "exp"};
    return names[static_cast<int>(map)];
}

/// What the routing probability r = sigmoid(logit) multiplies.
enum class gate_form {
    layer,  ///< x + scale r (a + f), X-MoD (Eq. 7)
    ffn,    ///< x + a + r f, MoD (Eq. 6)
    none    ///< x + scale (a + f), the ablation without a gate
};
constexpr std::string_view name_of(gate_form form) {
    constexpr std::string_view names[] = {"layer", "ffn", "none"};
    return names[static_cast<int>(form)];
}

}  // namespace sdepth::inline v0
