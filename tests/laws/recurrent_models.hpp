// SPDX-License-Identifier: MIT
// Small models with recurrent mixers, one for each policy, alone and with sparse depth around them (C-05), for the
// laws.
#pragma once

#include "laws/models.hpp"

namespace laws {

inline constexpr auto ungated = LinearAttention<linear_attention_policy{
    .heads = 2, .key_dim = 3, .value_dim = 5, .map = feature_map::exponential, .gated = false}>{};
inline constexpr auto relu_features =
    layer<LinearAttention<linear_attention_policy{.map = feature_map::relu, .epsilon = 1e-2}>, None>;
using LinearPlain = Model<linear_attention * 2_c, small>;
using LinearUngated =
    Model<layer<std::remove_cvref_t<decltype(ungated)>, SwiGLU<>, block_policy{.norm = norm_place::post}> * 2_c, small>;
using LinearRelu = Model<relu_features + dense, small>;
using LinearSparse = Model<dense + sparse<2>(linear_attention) * 2_c + linear_attention, small>;
using LinearByDocument =
    Model<sparse<2, sparse_policy{.scope = selection_scope::document}>(linear_attention) + linear_attention, small>;

using Mamba2Plain = Model<layer<Mamba2<mamba2_policy{.state = 3, .head_dim = 6}>, None> * 2_c, small>;
using Mamba2Grouped = Model<layer<Mamba2<mamba2_policy{.state = 3, .conv = 2, .expand = 1, .head_dim = 3, .groups = 2}>,
                                  SwiGLU<>, block_policy{.norm = norm_place::post}> +
                                layer<Mamba2<mamba2_policy{.state = 2, .conv = 1, .head_dim = 8}>, None>,
                            small>;
inline constexpr auto mamba2_block = layer<Mamba2<mamba2_policy{.state = 3, .head_dim = 6}>, SwiGLU<>>;
using Mamba2Sparse = Model<dense + sparse<2>(mamba2_block) * 2_c + mamba2_block, small>;
using Mamba2ByDocument =
    Model<sparse<2, sparse_policy{.scope = selection_scope::document}>(mamba2_block) + mamba2_block, small>;

using DeltaPlain = Model<gated_delta * 2_c, small>;
using DeltaShared =
    Model<layer<GatedDelta<gated_delta_policy{
                    .heads = 2, .value_heads = 4, .key_dim = 3, .value_dim = 5, .conv = 2, .output_gate = false}>,
                None, block_policy{.norm = norm_place::post}> *
              2_c,
          small>;
using DeltaSparse = Model<dense + sparse<2>(gated_delta) * 2_c + gated_delta, small>;
using DeltaByDocument =
    Model<sparse<2, sparse_policy{.scope = selection_scope::document}>(gated_delta) + gated_delta, small>;

inline constexpr auto mamba_block = layer<Mamba<mamba_policy{.state = 3}>, SwiGLU<>>;
using MambaPlain = Model<layer<Mamba<mamba_policy{.state = 3}>, None> * 2_c, small>;
using MambaNarrow = Model<layer<Mamba<mamba_policy{.state = 2, .conv = 1, .expand = 1, .step_rank = 3}>, SwiGLU<>,
                                block_policy{.norm = norm_place::post}> *
                              2_c,
                          small>;
using MambaSparse = Model<dense + sparse<2>(mamba_block) * 2_c + mamba_block, small>;
using MambaByDocument =
    Model<sparse<2, sparse_policy{.scope = selection_scope::document}>(mamba_block) + mamba_block, small>;

inline constexpr auto s4_block = layer<S4<s4_policy{.state = 3}>, SwiGLU<>>;
using S4Plain = Model<layer<S4<s4_policy{.state = 3}>, None> * 2_c, small>;
using S4Post = Model<layer<S4<s4_policy{.state = 2}>, SwiGLU<>, block_policy{.norm = norm_place::post}> * 2_c, small>;
using S4Sparse = Model<dense + sparse<2>(s4_block) * 2_c + s4_block, small>;
using S4ByDocument = Model<sparse<2, sparse_policy{.scope = selection_scope::document}>(s4_block) + s4_block, small>;

using linear_models = models<LinearPlain, LinearUngated, LinearRelu, LinearSparse, LinearByDocument>;
using mamba2_models = models<Mamba2Plain, Mamba2Grouped, Mamba2Sparse, Mamba2ByDocument>;
using delta_models = models<DeltaPlain, DeltaShared, DeltaSparse, DeltaByDocument>;
using mamba_models = models<MambaPlain, MambaNarrow, MambaSparse, MambaByDocument>;
using s4_models = models<S4Plain, S4Post, S4Sparse, S4ByDocument>;

}  // namespace laws
