// SPDX-License-Identifier: MIT
// Small models of dense layers and sparse depth, one for each policy, for the laws.
#pragma once

#include <type_traits>

#include "sdepth/sdepth.hpp"

namespace laws {

using namespace sdepth;
using namespace sdepth::literals;

/// Model types that keep the laws.
template <class... Ms>
struct models {};

inline constexpr Dims small{.width = 12, .head_dim = 4, .heads = 4, .kv_heads = 2, .ffn = 20, .vocab = 19};
inline constexpr Dims tied{.width = 12, .head_dim = 4, .heads = 4, .kv_heads = 2, .ffn = 20, .vocab = 19, .tied = true};
inline constexpr Run short_run{.seq = 13, .batch = 2, .max_documents = 3};

inline constexpr auto biased_attention = attention_policy{.norm = qk_norm::full_width, .window = 5, .biases = true};
inline constexpr auto plain_ffn = MLP<activation::gelu, ffn_policy{.biases = true}>{};
inline constexpr auto olmo = layer<Attention<biased_attention>, std::remove_cvref_t<decltype(plain_ffn)>,
                                   block_policy{.norm = norm_place::post}>;
inline constexpr auto bare =
    layer<Attention<attention_policy{.norm = qk_norm::none, .rotary = false}>, SwiGLU<ffn_policy{.biases = true}>>;

using Qwen = Model<dense * 2_c, small>;
using Olmo = Model<olmo * 2_c, tied>;
using Bare = Model<bare + attention_only + ffn_only + bare, small>;
using XMoD = Model<dense + sparse<3> * 4_c + dense, small>;
using MoD = Model<dense + (mod<3> + dense) * 2_c, small>;
using Printed = Model<dense + sparse<3, printed_policy> * 3_c + dense, small>;
using Detached = Model<dense + sparse<2, sparse_policy{.detach = true}> * 2_c + dense, small>;
using Raw = Model<dense + sparse<2, sparse_policy{.gate_logit = routing_logit::raw}> * 2_c + dense, small>;
using Ungated = Model<dense + sparse<2, sparse_policy{.gate = gate_form::none}> * 2_c + dense, small>;
using Unscaled = Model<dense + sparse<2, sparse_policy{.scale = false}> * 2_c + dense, small>;
using Unbiased = Model<dense + sparse<2, sparse_policy{.bias = false}> * 2_c + dense, small>;
using NoAnchors = Model<dense + sparse<2, sparse_policy{.clear_every = 2}> * 4_c, small>;
using ByDocument = Model<dense + sparse<2, sparse_policy{.scope = selection_scope::document}> * 3_c + dense, small>;
using FullKeys = Model<dense + sparse<2, sparse_policy{.keys = key_scope::full}> * 2_c + dense, small>;
using FullKeysPost = Model<dense + sparse<2, sparse_policy{.keys = key_scope::full}>(olmo) * 2_c + dense, small>;
using Windowed = Model<dense + sparse<2>(olmo) * 2_c + dense, small>;
using RoutedFfn = Model<dense + (attention_only + sparse<2>(ffn_only) * 2_c) * 2_c + dense, small>;
using Looped = Model<dense + loop<2>(sparse<2> * 2_c + dense), small>;
using All = Model<dense + sparse<1> * 2_c + dense, small>;

// u has a weight and a step of its own; with Halved only their product is X-MoD's.
using Weighted = Model<dense + sparse<3, sparse_policy{.tau = 0.5, .increment = 0.125}> * 4_c + dense, small>;
using Halved = Model<dense + sparse<3, sparse_policy{.tau = 2, .increment = 0.5}> * 4_c + dense, small>;

using dense_models = models<Qwen, Olmo, Bare>;
using routing_models = models<XMoD, MoD, Printed, Raw, Weighted>;
using gate_models = models<Ungated, Unscaled, Unbiased>;
using context_models = models<ByDocument, FullKeys, FullKeysPost, Windowed>;
using place_models = models<RoutedFfn, NoAnchors, Looped, All>;

using NoRoutingLoss = Model<dense + sparse<2, sparse_policy{.detach = true, .loss_weight = 0}> * 2_c + dense, small>;
using OneAnchor = Model<dense, small>;
using OneSparse = Model<dense + sparse<2, sparse_policy{.bias = false}>, small>;

}  // namespace laws
