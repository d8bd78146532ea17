// SPDX-License-Identifier: MIT
// Named models: those of the papers that this library was built from, and a few released ones. Formulas, then sizes,
// then the list of names. Rank 4.
#pragma once

#include <string_view>
#include <type_traits>

#include "sdepth/layers/block.hpp"
#include "sdepth/layers/experts.hpp"
#include "sdepth/layers/gated_delta.hpp"
#include "sdepth/layers/mamba.hpp"
#include "sdepth/layers/mamba2.hpp"
#include "sdepth/layers/moda.hpp"
#include "sdepth/layers/sparse.hpp"
#include "sdepth/model.hpp"

namespace sdepth::inline v0 {

namespace presets {

using namespace literals;

// ---- X-MoD (arXiv 2609.34212): routing as printed, threshold 1/2 and loss weight 1e-4 on the raw logit --------------

template <long long K>
inline constexpr Sparse<K, Dense, printed_policy> printed{};
inline constexpr Sparse<8, Dense, printed_mod_policy> printed_mod{};

inline constexpr auto dense_28 = dense * 28_c;
inline constexpr auto mod_k8 = dense + (printed_mod + dense) * 24_c;                                         // Eq. 34
inline constexpr auto a4k8 = dense * 4_c + (printed<8> * 24_c + dense) + (printed<8> * 32_c + dense) * 4_c;  // Eq. 35
inline constexpr auto a3k16 = dense * 4_c + (printed<16> * 48_c + dense) * 6_c;                              // Eq. 36
inline constexpr auto moe_64 = moe<64, 6, steered_policy> * 28_c;
inline constexpr auto moe_128 = moe<128, 6, steered_policy> * 28_c;

// Its controls (Table 7): routing of the feed-forward part alone, full attention every K refinements; and queries
// chosen as before, with keys and values of every token.
template <long long K>
inline constexpr Sparse<K, Block<None, SwiGLU<>>, printed_policy> routed_ffn{};
template <long long K>
inline constexpr auto routed_update = attention_only + routed_ffn<K>* boost::hana::llong_c<K>;
inline constexpr auto routed_ffn_a4k8 =
    dense * 4_c + (routed_update<8> * 3_c + dense) + (routed_update<8> * 4_c + dense) * 4_c;
inline constexpr auto routed_ffn_a3k16 = dense * 4_c + (routed_update<16> * 3_c + dense) * 6_c;

inline constexpr sparse_policy full_keys_policy{
    .cut = threshold::half, .loss_logit = routing_logit::raw, .keys = key_scope::full, .loss_weight = 1e-4};
template <long long K>
inline constexpr Sparse<K, Dense, full_keys_policy> selected_q{};
inline constexpr auto selected_q_a4k8 =
    dense * 4_c + (selected_q<8> * 24_c + dense) + (selected_q<8> * 32_c + dense) * 4_c;
inline constexpr auto selected_q_a3k16 = dense * 4_c + (selected_q<16> * 48_c + dense) * 6_c;

// Its depth extension (Table 9).
inline constexpr auto deep_dense = dense * 52_c;
inline constexpr auto deep_a1k4 = dense * 4_c + (printed<4> * 4_c + dense) * 24_c;
inline constexpr auto deep_a1k8 = dense * 4_c + (printed<8> * 8_c + dense) * 24_c;
inline constexpr auto deep_a1k12 = dense * 4_c + (printed<12> * 12_c + dense) * 24_c;
inline constexpr auto deep_a1k16 = dense * 4_c + (printed<16> * 16_c + dense) * 24_c;

// Its backbones (Table 4), named after the source's active parameters; `expert_ffn` is for the expert models.
inline constexpr Dims size_165m{
    .width = 512, .head_dim = 64, .heads = 16, .kv_heads = 8, .ffn = 1536, .expert_ffn = 192, .vocab = 50257};
inline constexpr Dims size_298m{
    .width = 768, .head_dim = 64, .heads = 16, .kv_heads = 8, .ffn = 2304, .expert_ffn = 288, .vocab = 50257};
inline constexpr Dims size_556m{
    .width = 1024, .head_dim = 128, .heads = 16, .kv_heads = 8, .ffn = 3072, .expert_ffn = 384, .vocab = 50257};
inline constexpr Dims size_936m{
    .width = 1536, .head_dim = 128, .heads = 16, .kv_heads = 8, .ffn = 3840, .expert_ffn = 480, .vocab = 50257};
inline constexpr Dims size_1650m{
    .width = 2048, .head_dim = 128, .heads = 16, .kv_heads = 8, .ffn = 6144, .expert_ffn = 768, .vocab = 50257};

// ---- MoDA (arXiv 2603.15619): OLMo 2 blocks, and depth slots in them ------------------------------------------------

inline constexpr block_policy post_norm{.norm = norm_place::post};
inline constexpr attention_policy olmo_attention{.norm = qk_norm::full_width, .rotary_base = 5e5};
inline constexpr moda_policy reads_only{.attention = attention_slot::none, .ffn = false};
inline constexpr moda_policy reuses_kv{.ffn = false};
inline constexpr moda_policy projects_both{.attention = attention_slot::projected};

inline constexpr Block<Attention<olmo_attention>, SwiGLU<>, post_norm> olmo{};
template <moda_policy P>
inline constexpr Block<DepthAttention<P, olmo_attention>, SwiGLU<>, post_norm> olmo_moda{};

inline constexpr auto olmo_36 = olmo * 36_c;
inline constexpr auto olmo_38 = olmo * 38_c;
inline constexpr auto moda_reuse = olmo_moda<reuses_kv> * 35_c + olmo_moda<reads_only>;
inline constexpr auto moda_ffn_kv = olmo_moda<moda_policy{}> * 35_c + olmo_moda<reads_only>;
inline constexpr auto moda_both_kv = olmo_moda<projects_both> * 35_c + olmo_moda<reads_only>;

inline constexpr Dims size_700m{
    .width = 1024, .head_dim = 64, .heads = 16, .kv_heads = 8, .ffn = 4096, .vocab = 100278, .tied = true};

// Its small models: biases in every projection, no norm of queries and keys. There the last layer keeps its
// projection too, though nobody reads the slot: the increments of Table 6 count it.
inline constexpr attention_policy small_attention{.norm = qk_norm::none, .biases = true};
inline constexpr ffn_policy small_ffn{.biases = true};
inline constexpr Block<Attention<small_attention>, SwiGLU<small_ffn>, post_norm> small{};
inline constexpr Block<DepthAttention<moda_policy{}, small_attention>, SwiGLU<small_ffn>, post_norm> small_moda{};

inline constexpr auto small_24 = small * 24_c;
inline constexpr auto small_48 = small * 48_c;
inline constexpr auto small_moda_24 = small_moda * 24_c;
inline constexpr auto small_moda_48 = small_moda * 48_c;

inline constexpr Dims size_small{
    .width = 384, .head_dim = 64, .heads = 6, .kv_heads = 2, .ffn = 1536, .vocab = 50304, .tied = true};

// ---- released models, and classic positions in the space ------------------------------------------------------------

// Qwen3-0.6B and Mixtral 8x7B: every tensor of the release.
inline constexpr Dims size_qwen3_600m{
    .width = 1024, .head_dim = 128, .heads = 16, .kv_heads = 8, .ffn = 3072, .vocab = 151936, .tied = true};

inline constexpr block_policy coarse_norm{.norm_epsilon = 1e-5};
inline constexpr attention_policy plain_attention{.norm = qk_norm::none};
inline constexpr auto mixtral = layer<Attention<plain_attention>, Experts<8, 2>, coarse_norm> * 32_c;
inline constexpr Dims size_mixtral{
    .width = 4096, .head_dim = 128, .heads = 32, .kv_heads = 8, .expert_ffn = 14336, .vocab = 32000};

// Mamba-130m and Mamba-2-130m: every tensor of the release.
inline constexpr auto mamba_24 = layer<Mamba<>, None, coarse_norm> * 24_c;
inline constexpr auto mamba2_24 = layer<Mamba2<>, None, coarse_norm> * 24_c;
inline constexpr Dims size_mamba_130m{.width = 768, .vocab = 50280, .tied = true};
inline constexpr Dims size_mamba2_130m{.width = 768, .vocab = 50288, .tied = true};

// Jamba v0.1: one attention layer in eight, experts in every other. The release has RMS norms on step, B and C of each
// Mamba layer (256 + 16 + 16 gains), which this library has not.
inline constexpr attention_policy no_positions{.norm = qk_norm::none, .rotary = false};
inline constexpr auto jamba_pair = layer<Mamba<>, SwiGLU<>> + layer<Mamba<>, Experts<16, 2>>;
inline constexpr auto jamba_with_attention = layer<Attention<no_positions>, SwiGLU<>> + layer<Mamba<>, Experts<16, 2>>;
inline constexpr auto jamba = (jamba_pair * 2_c + jamba_with_attention + jamba_pair) * 4_c;
inline constexpr Dims size_jamba{
    .width = 4096, .head_dim = 128, .heads = 32, .kv_heads = 8, .ffn = 14336, .expert_ffn = 14336, .vocab = 65536};

// Qwen3-Next-80B-A3B: three gated delta layers, then one attention layer, experts in all. The release gates the output
// of attention (a doubled query projection) and of the shared expert (one row) and adds a prediction module; this
// library has none of these.
inline constexpr gated_delta_policy next_delta{.heads = 16, .value_heads = 32, .key_dim = 128, .value_dim = 128};
inline constexpr attention_policy next_attention{.rotary_base = 1e7};
inline constexpr moe_policy next_policy{.order = score_order::score_then_choose, .shared = 1, .loss_weight = 1e-3};
using NextExperts = Experts<512, 10, next_policy>;
inline constexpr auto qwen3_next =
    (layer<GatedDelta<next_delta>, NextExperts> * 3_c + layer<Attention<next_attention>, NextExperts>)*12_c;
inline constexpr Dims size_qwen3_next{
    .width = 2048, .head_dim = 256, .heads = 16, .kv_heads = 2, .expert_ffn = 512, .vocab = 151936};

// Positions of Switch (Base, 128 experts, one a token) and GLaM (0.1B/64E, two a token): experts in every other layer,
// here of a decoder. Their experts are two matrices of hidden width 3072; a SwiGLU of width 2048 has as many weights.
// The originals have relative position biases, and Switch is an encoder with a decoder.
using Positionless = Attention<no_positions>;
inline constexpr auto switch_base = (layer<Positionless, MLP<activation::relu>> +  //
                                     layer<Positionless, Experts<128, 1, switch_policy>>)*6_c;
inline constexpr auto glam = (layer<Positionless, SwiGLU<>> + layer<Positionless, Experts<64, 2>>)*6_c;
inline constexpr Dims size_switch_base{
    .width = 768, .head_dim = 64, .heads = 12, .ffn = 3072, .expert_ffn = 2048, .vocab = 32128, .tied = true};
inline constexpr Dims size_glam_100m{
    .width = 768, .head_dim = 64, .heads = 12, .ffn = 3072, .expert_ffn = 2048, .vocab = 256000, .tied = true};

// ---- the names ------------------------------------------------------------------------------------------------------

/// Calls f(name, std::type_identity<Model<...>>{}) for each preset, in the order of the sources.
template <class F>
constexpr void for_each(F f) {
    using std::type_identity;
    f("165M/dense", type_identity<Model<dense_28, size_165m>>{});
    f("165M/mod", type_identity<Model<mod_k8, size_165m>>{});
    f("165M/a4k8", type_identity<Model<a4k8, size_165m>>{});
    f("165M/a3k16", type_identity<Model<a3k16, size_165m>>{});
    f("165M/moe64", type_identity<Model<moe_64, size_165m>>{});
    f("165M/moe128", type_identity<Model<moe_128, size_165m>>{});

    f("298M/dense", type_identity<Model<dense_28, size_298m>>{});
    f("298M/mod", type_identity<Model<mod_k8, size_298m>>{});
    f("298M/a4k8", type_identity<Model<a4k8, size_298m>>{});
    f("298M/a3k16", type_identity<Model<a3k16, size_298m>>{});
    f("298M/moe64", type_identity<Model<moe_64, size_298m>>{});
    f("298M/moe128", type_identity<Model<moe_128, size_298m>>{});

    f("556M/dense", type_identity<Model<dense_28, size_556m>>{});
    f("556M/mod", type_identity<Model<mod_k8, size_556m>>{});
    f("556M/a4k8", type_identity<Model<a4k8, size_556m>>{});
    f("556M/a3k16", type_identity<Model<a3k16, size_556m>>{});
    f("556M/moe64", type_identity<Model<moe_64, size_556m>>{});
    f("556M/moe128", type_identity<Model<moe_128, size_556m>>{});

    f("936M/dense", type_identity<Model<dense_28, size_936m>>{});
    f("936M/mod", type_identity<Model<mod_k8, size_936m>>{});
    f("936M/a4k8", type_identity<Model<a4k8, size_936m>>{});
    f("936M/a3k16", type_identity<Model<a3k16, size_936m>>{});
    f("936M/moe64", type_identity<Model<moe_64, size_936m>>{});
    f("936M/moe128", type_identity<Model<moe_128, size_936m>>{});

    f("1.65B/dense", type_identity<Model<dense_28, size_1650m>>{});
    f("1.65B/mod", type_identity<Model<mod_k8, size_1650m>>{});
    f("1.65B/a4k8", type_identity<Model<a4k8, size_1650m>>{});
    f("1.65B/a3k16", type_identity<Model<a3k16, size_1650m>>{});
    f("1.65B/moe64", type_identity<Model<moe_64, size_1650m>>{});
    f("1.65B/moe128", type_identity<Model<moe_128, size_1650m>>{});

    f("936M/routed_ffn_a4k8", type_identity<Model<routed_ffn_a4k8, size_936m>>{});
    f("936M/routed_ffn_a3k16", type_identity<Model<routed_ffn_a3k16, size_936m>>{});
    f("936M/selected_q_a4k8", type_identity<Model<selected_q_a4k8, size_936m>>{});
    f("936M/selected_q_a3k16", type_identity<Model<selected_q_a3k16, size_936m>>{});

    f("deep/dense", type_identity<Model<deep_dense, size_165m>>{});
    f("deep/a1k4", type_identity<Model<deep_a1k4, size_165m>>{});
    f("deep/a1k8", type_identity<Model<deep_a1k8, size_165m>>{});
    f("deep/a1k12", type_identity<Model<deep_a1k12, size_165m>>{});
    f("deep/a1k16", type_identity<Model<deep_a1k16, size_165m>>{});

    f("moda/36", type_identity<Model<olmo_36, size_700m>>{});
    f("moda/38", type_identity<Model<olmo_38, size_700m>>{});
    f("moda/36+kv", type_identity<Model<moda_reuse, size_700m>>{});
    f("moda/36+ffn_kv", type_identity<Model<moda_ffn_kv, size_700m>>{});
    f("moda/36+ffn_kv+attention_kv", type_identity<Model<moda_both_kv, size_700m>>{});
    f("moda/small24", type_identity<Model<small_24, size_small>>{});
    f("moda/small24+ffn_kv", type_identity<Model<small_moda_24, size_small>>{});
    f("moda/small48", type_identity<Model<small_48, size_small>>{});
    f("moda/small48+ffn_kv", type_identity<Model<small_moda_48, size_small>>{});

    f("released/qwen3-0.6b", type_identity<Model<dense_28, size_qwen3_600m>>{});
    f("released/mixtral-8x7b", type_identity<Model<mixtral, size_mixtral>>{});
    f("released/mamba-130m", type_identity<Model<mamba_24, size_mamba_130m>>{});
    f("released/mamba2-130m", type_identity<Model<mamba2_24, size_mamba2_130m>>{});
    f("released/jamba-v0.1", type_identity<Model<jamba, size_jamba>>{});
    f("released/qwen3-next-80b", type_identity<Model<qwen3_next, size_qwen3_next>>{});
    f("classic/switch-base", type_identity<Model<switch_base, size_switch_base>>{});
    f("classic/glam-0.1b", type_identity<Model<glam, size_glam_100m>>{});
}

}  // namespace presets

}  // namespace sdepth::inline v0
