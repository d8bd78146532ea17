// SPDX-License-Identifier: MIT
// Small models with depth slots, one for each policy and composition, for the laws.
#pragma once

#include "laws/expert_models.hpp"

namespace laws {

template <moda_policy P, attention_policy A = attention_policy{}, class Ffn = SwiGLU<>, block_policy B = block_policy{}>
inline constexpr Block<DepthAttention<detail::evaluated(P), detail::evaluated(A)>, Ffn, detail::evaluated(B)> deep{};

inline constexpr moda_policy reuses{.ffn = false};
inline constexpr moda_policy projects{.attention = attention_slot::projected};
inline constexpr moda_policy of_ffn{.attention = attention_slot::none};
inline constexpr moda_policy reads_only{.attention = attention_slot::none, .ffn = false};
inline constexpr moda_policy writes_only{.reads = false};
inline constexpr moda_policy separate{.joint = false};
inline constexpr moda_policy last_one{.slots = 1};
inline constexpr moda_policy last_three{.slots = 3};
inline constexpr moda_policy first_three{.slots = 3, .choice = slot_choice::first};
inline constexpr moda_policy ends_of_three{.slots = 3, .choice = slot_choice::mixed};
inline constexpr moda_policy ends_apart{.slots = 3, .choice = slot_choice::mixed, .joint = false};
inline constexpr attention_policy unnormed{.norm = qk_norm::none, .rotary = false};
inline constexpr attention_policy plain{.norm = qk_norm::none, .biases = true};

using MoDA = Model<moda * 3_c + moda_last, small>;
using MoDAReused = Model<deep<reuses> * 3_c, small>;
using MoDAProjected =
    Model<deep<projects, biased_attention, SwiGLU<>, block_policy{.norm = norm_place::post}> * 3_c, tied>;
using MoDAUnnormed = Model<deep<projects, unnormed> * 2_c + deep<moda_policy{}, unnormed>, small>;
using MoDAPlain = Model<deep<projects, plain> * 2_c + deep<of_ffn, plain>, small>;
using MoDAParts = Model<deep<writes_only> + dense + deep<of_ffn> + linear_attention + deep<reads_only>, small>;
using MoDASeparate = Model<deep<separate> * 3_c, small>;
using MoDALastOne = Model<deep<last_one> * 3_c, small>;
using MoDALastThree = Model<deep<last_three> * 4_c, small>;
using MoDAFirstThree = Model<deep<first_three> * 4_c, small>;
using MoDAMixed = Model<deep<ends_of_three> * 4_c, small>;
using MoDAMixedApart = Model<deep<ends_apart> * 3_c, small>;
using MoDALooped = Model<loop<2>(moda * 2_c) + moda_last, small>;

using MoDASparse = Model<moda + sparse<2>(moda) * 3_c + moda, small>;
using MoDAMod = Model<moda + sparse<3, mod_policy>(moda) * 2_c + moda_last, small>;
using MoDAFullKeys = Model<moda + sparse<2, sparse_policy{.keys = key_scope::full}>(deep<projects>) +
                               sparse<2, sparse_policy{.keys = key_scope::full}>(moda) + moda_last,
                           small>;
using MoDAByDocument =
    Model<moda + sparse<2, sparse_policy{.scope = selection_scope::document}>(moda) * 2_c + moda_last, small>;
using MoDASparseBounded = Model<deep<last_three> + sparse<2>(deep<ends_apart>) * 2_c + deep<ends_of_three>, small>;
using MoDAWindowed = Model<moda + sparse<2>(deep<moda_policy{}, biased_attention>) * 2_c + moda_last, small>;
using MoDARoutedFfn =
    Model<deep<reuses> + (deep<reuses, attention_policy{}, None> + sparse<2>(ffn_only) * 2_c) * 2_c + moda_last, small>;
using MoDAExperts = Model<moda + sparse<2>(layer<DepthAttention<>, Experts<4, 2, moe_policy{.shared = 1}>>) * 2_c +
                              layer<DepthAttention<>, Experts<4, 2>> + dense,
                          with_experts>;

using slot_models = models<MoDA, MoDAReused, MoDAProjected, MoDAUnnormed, MoDAPlain, MoDAParts, MoDALooped>;
using bounded_slot_models = models<MoDALastOne, MoDALastThree, MoDAFirstThree, MoDAMixed, MoDASeparate, MoDAMixedApart>;
using sparse_slot_models = models<MoDASparse, MoDAMod, MoDAFullKeys, MoDAByDocument, MoDASparseBounded, MoDAWindowed,
                                  MoDARoutedFfn, MoDAExperts>;

}  // namespace laws
