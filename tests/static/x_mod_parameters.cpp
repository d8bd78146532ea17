// SPDX-License-Identifier: MIT
// Depths and parameters of the X-MoD paper's tables. The printed value stands beside each integer; a row that no
// formula reaches says why.
#include "printed.hpp"

namespace {

using namespace sdepth;
using namespace sdepth::literals;
using namespace sdepth::presets;
using namespace sdepth_test;

// ---- depth (Eq. 2-5, 34-36) -----------------------------------------------------------------------------------------

// Alternating layers: total over active is 2K / (K + 1), below 2 however sparse (Eq. 2).
template <long long K>
constexpr ratio alternating = ratio(Model<(printed<K> + dense) * 7_c, size_165m>::layers) /
                              active_layers<Model<(printed<K> + dense) * 7_c, size_165m>>;
static_assert(alternating<8> == ratio(16, 9));  // 1.78
static_assert(alternating<1> == ratio(1) && alternating<2> == ratio(4, 3) && alternating<64> == ratio(128, 65));
static_assert(alternating<4096> == ratio(8192, 4097));  // 2 - 2/4097

static_assert(Model<mod_k8, size_936m>::layers == 49 && active_layers<Model<mod_k8, size_936m>> == ratio(28));
static_assert(Model<a4k8, size_936m>::layers == 161 && active_layers<Model<a4k8, size_936m>> == ratio(28));
static_assert(Model<a3k16, size_936m>::layers == 298 && active_layers<Model<a3k16, size_936m>> == ratio(28));
static_assert(Model<moe_64, size_936m>::layers == 28 && active_layers<Model<moe_64, size_936m>> == ratio(28));

// N0 + N1 (1 + A K) layers, of which a token passes N0 + N1 (1 + A): here N0 = 4, N1 = 6, A = 3, K = 16 (Eq. 4-5).
static_assert(Model<a3k16, size_936m>::layers == 4 + 6 * (1 + 3 * 16));
static_assert(active_layers<Model<a3k16, size_936m>> == ratio(4 + 6 * (1 + 3)));

// Dense and sparse layers of a formula; each sparse layer has one scale (Eq. 7), MoD has none (Eq. 6).
static_assert(params<Model<a4k8, size_936m>>.of(role::scale) == 152);
static_assert(params<Model<a3k16, size_936m>>.of(role::scale) == 288);
static_assert(params<Model<mod_k8, size_936m>>.of(role::scale) == 0);
static_assert(params<Model<a4k8, size_936m>>.of(role::router) == 152 * 1536);
static_assert(params<Model<a4k8, size_936m>>.state == 0, "printed policy: threshold 1/2 keeps no cut");

// Geometry of the ablations, which the paper leaves open: no anchors, the bias cleared every 16; no prefix.
constexpr auto no_anchors = dense * 4_c + sparse<16, sparse_policy{.clear_every = 16, .cut = threshold::half}> * 384_c;
constexpr auto no_prefix = (printed<16> * 16_c + dense) * 14_c;
static_assert(active_layers<Model<no_anchors, size_936m>> == ratio(28) && Model<no_anchors, size_936m>::layers == 388);
static_assert(active_layers<Model<no_prefix, size_936m>> == ratio(28) && Model<no_prefix, size_936m>::layers == 238);

// ---- one layer, embeddings (Table 4) --------------------------------------------------------------------------------

constexpr auto one = dense;
constexpr auto two = dense * 2_c;
template <class TwoLayers, class OneLayer>
constexpr long long layer_matrices = matrices<TwoLayers> - matrices<OneLayer>;
template <class TwoLayers, class OneLayer>
constexpr long long embeddings = 2 * matrices<OneLayer> - matrices<TwoLayers>;

static_assert(counted<layer_matrices<Model<two, size_165m>, Model<one, size_165m>>, 3'932'160>() &&
              counted<embeddings<Model<two, size_165m>, Model<one, size_165m>>, 51'463'168>());
static_assert(counted<layer_matrices<Model<two, size_298m>, Model<one, size_298m>>, 7'667'712>() &&
              counted<embeddings<Model<two, size_298m>, Model<one, size_298m>>, 77'194'752>());
static_assert(counted<layer_matrices<Model<two, size_556m>, Model<one, size_556m>>, 15'728'640>() &&
              counted<embeddings<Model<two, size_556m>, Model<one, size_556m>>, 102'926'336>());
static_assert(counted<layer_matrices<Model<two, size_936m>, Model<one, size_936m>>, 27'131'904>() &&
              counted<embeddings<Model<two, size_936m>, Model<one, size_936m>>, 154'389'504>());
static_assert(counted<layer_matrices<Model<two, size_1650m>, Model<one, size_1650m>>, 50'331'648>() &&
              counted<embeddings<Model<two, size_1650m>, Model<one, size_1650m>>, 205'852'672>());

// ---- totals (Tables 1, 4, 6) ----------------------------------------------------------------------------------------

static_assert(counted<matrices<Model<dense_28, size_165m>>, 161'563'648>());
static_assert(counted<matrices<Model<mod_k8, size_165m>>, 244'139'008>());
static_assert(counted<matrices<Model<a4k8, size_165m>>, 684'540'928>());
static_assert(counted<matrices<Model<a3k16, size_165m>>, 1'223'246'848>());
static_assert(counted<matrices<Model<moe_64, size_165m>>, 641'418'240>());
static_assert(counted<matrices<Model<moe_128, size_165m>>, 1'170'818'048>());

static_assert(counted<matrices<Model<dense_28, size_298m>>, 291'890'688>());
static_assert(counted<matrices<Model<mod_k8, size_298m>>, 452'912'640>());
static_assert(counted<matrices<Model<a4k8, size_298m>>, 1'311'696'384>());
static_assert(counted<matrices<Model<a3k16, size_298m>>, 2'362'172'928>());
static_assert(counted<matrices<Model<moe_64, size_298m>>, 1'370'875'392>());
static_assert(counted<matrices<Model<moe_128, size_298m>>, 2'561'336'832>());

static_assert(counted<matrices<Model<dense_28, size_556m>>, 543'328'256>());   // 0.54B
static_assert(counted<matrices<Model<mod_k8, size_556m>>, 873'629'696>());     // 0.87B
static_assert(counted<matrices<Model<a4k8, size_556m>>, 2'635'237'376>());     // 2.64B
static_assert(counted<matrices<Model<a3k16, size_556m>>, 4'790'061'056>());    // 4.79B
static_assert(counted<matrices<Model<moe_64, size_556m>>, 2'460'911'616>());   // 2.46B
static_assert(counted<matrices<Model<moe_128, size_556m>>, 4'576'675'840>());  // 4.58B

static_assert(
    counted<matrices<Model<dense_28, size_936m>>, 914'082'816>());  // 936M: a label, 1.024 x the count (below)
static_assert(counted<matrices<Model<mod_k8, size_936m>>, 1'483'852'800>());   // 1.48B
static_assert(counted<matrices<Model<a4k8, size_936m>>, 4'522'626'048>());     // 4.52B
static_assert(counted<matrices<Model<a3k16, size_936m>>, 8'239'696'896>());    // 8.24B
static_assert(counted<matrices<Model<moe_64, size_936m>>, 4'508'863'488>());   // 4.51B
static_assert(counted<matrices<Model<moe_128, size_936m>>, 8'475'233'280>());  // 8.48B

static_assert(counted<matrices<Model<dense_28, size_1650m>>, 1'615'138'816>());  // 1.65B: a label, 1.024 x the count
static_assert(counted<matrices<Model<mod_k8, size_1650m>>, 2'672'103'424>());    // 2.67B
static_assert(counted<matrices<Model<a4k8, size_1650m>>, 8'309'248'000>());      // 8.31B
static_assert(counted<matrices<Model<moe_64, size_1650m>>, 9'281'802'240>());    // 9.28B
// Printed 14.73B and 17.16B: the two rows trained with tensor parallelism; 16 others fit the formula.
static_assert(counted<matrices<Model<a3k16, size_1650m>>, 15'204'683'776>());
static_assert(counted<matrices<Model<moe_128, size_1650m>>, 17'741'189'120>());

// The names of the sizes are the dense counts times 1.024, as if a billion had 1,024 millions.
template <class M>
constexpr long long label = rounded(ratio(matrices<M>, 1'000'000) * ratio(1024, 1000), 10);
static_assert(label<Model<dense_28, size_165m>> == 1'654);    // 165M
static_assert(label<Model<dense_28, size_298m>> == 2'989);    // 298M
static_assert(label<Model<dense_28, size_556m>> == 5'564);    // 556M
static_assert(label<Model<dense_28, size_936m>> == 9'360);    // 936M
static_assert(label<Model<dense_28, size_1650m>> == 16'539);  // 1.65B

// Total over active at 936M; printed 4.8, 8.8 and 1.58 divide by the label instead.
template <class M>
constexpr ratio growth = ratio(matrices<M>, matrices<Model<dense_28, size_936m>>);
static_assert(rounded(growth<Model<a4k8, size_936m>>, 1000) == 4'948);
static_assert(rounded(growth<Model<a3k16, size_936m>>, 1000) == 9'014);
static_assert(rounded(growth<Model<mod_k8, size_936m>>, 1000) == 1'623);
static_assert(rounded(growth<Model<a4k8, size_936m>> / ratio(1024, 1000), 10) == 48);
static_assert(rounded(growth<Model<a3k16, size_936m>> / ratio(1024, 1000), 10) == 88);
static_assert(rounded(growth<Model<mod_k8, size_936m>> / ratio(1024, 1000), 1000) == 1'585);  // of 1.48B: 1.58

// X-MoD over its expert model (pairwise table): 1.07, 1.05, 1.00, .97, .90, .86.
template <class M, class Experts>
constexpr long long over = rounded(ratio(matrices<M>, matrices<Experts>), 100);
static_assert(over<Model<a4k8, size_556m>, Model<moe_64, size_556m>> == 107);
static_assert(over<Model<a3k16, size_556m>, Model<moe_128, size_556m>> == 105);
static_assert(over<Model<a4k8, size_936m>, Model<moe_64, size_936m>> == 100);
static_assert(over<Model<a3k16, size_936m>, Model<moe_128, size_936m>> == 97);
static_assert(over<Model<a4k8, size_1650m>, Model<moe_64, size_1650m>> == 90);
static_assert(over<Model<a3k16, size_1650m>, Model<moe_128, size_1650m>> == 86);

// "Within the budget of the expert model" does not hold where the two were chosen; A = 2 would have been.
static_assert(matrices<Model<a4k8, size_165m>> > matrices<Model<moe_64, size_165m>>);
static_assert(matrices<Model<a3k16, size_165m>> > matrices<Model<moe_128, size_165m>>);
constexpr auto a2k8 = dense * 4_c + (printed<8> * 16_c + dense) * 8_c;
constexpr auto a3k8 = dense * 4_c + (printed<8> * 24_c + dense) * 6_c;
constexpr auto a2k16 = dense * 4_c + (printed<16> * 32_c + dense) * 8_c;
static_assert(matrices<Model<a2k8, size_165m>> < matrices<Model<moe_64, size_165m>>);
static_assert(matrices<Model<a3k8, size_165m>> > matrices<Model<moe_64, size_165m>>);
static_assert(matrices<Model<a2k16, size_165m>> < matrices<Model<moe_128, size_165m>>);

// ---- controls (Tables 2, 7) -----------------------------------------------------------------------------------------

// Depth counts feed-forward layers there. Printed 3.26B and 5.68B are one attention module, 9,437,184, short.
static_assert(counted<Model<routed_ffn_a4k8, size_936m>::ffn_layers, 161>());
static_assert(counted<Model<routed_ffn_a3k16, size_936m>::ffn_layers, 298>());
static_assert(counted<matrices<Model<routed_ffn_a4k8, size_936m>>, 3'267'480'576>());
static_assert(counted<matrices<Model<routed_ffn_a3k16, size_936m>>, 5'691'657'216>());
static_assert(rounded(ratio(3'267'480'576 - 9'437'184, 1'000'000'000), 100) == 326);
static_assert(rounded(ratio(5'691'657'216 - 9'437'184, 1'000'000'000), 100) == 568);
static_assert(matrices<Model<selected_q_a4k8, size_936m>> == matrices<Model<a4k8, size_936m>>);    // 4.52B
static_assert(matrices<Model<selected_q_a3k16, size_936m>> == matrices<Model<a3k16, size_936m>>);  // 8.24B
static_assert(total<Model<selected_q_a4k8, size_936m>> == total<Model<a4k8, size_936m>>);
// All 28 attention modules of the dense model are there.
static_assert(params<Model<routed_ffn_a4k8, size_936m>>.of(role::query) == 28 * 1536 * 2048);
static_assert(params<Model<routed_ffn_a3k16, size_936m>>.of(role::query) == 28 * 1536 * 2048);

// ---- depth extension (Table 9) --------------------------------------------------------------------------------------

static_assert(Model<deep_a1k4, size_165m>::layers == 124 && active_layers<Model<deep_a1k4, size_165m>> == ratio(52));
static_assert(Model<deep_a1k8, size_165m>::layers == 220 && active_layers<Model<deep_a1k8, size_165m>> == ratio(52));
static_assert(Model<deep_a1k12, size_165m>::layers == 316 && active_layers<Model<deep_a1k12, size_165m>> == ratio(52));
static_assert(Model<deep_a1k16, size_165m>::layers == 412 && active_layers<Model<deep_a1k16, size_165m>> == ratio(52));

static_assert(counted<matrices<Model<deep_dense, size_165m>>, 255'935'488>());    // 256M
static_assert(counted<matrices<Model<deep_a1k4, size_165m>>, 539'051'008>());     // 552M: 1.024 x the count
static_assert(counted<matrices<Model<deep_a1k8, size_165m>>, 916'538'368>());     // 939M: 1.024 x the count
static_assert(counted<matrices<Model<deep_a1k12, size_165m>>, 1'294'025'728>());  // 1.29B
static_assert(counted<matrices<Model<deep_a1k16, size_165m>>, 1'671'513'088>());  // 1.67B
static_assert(rounded(ratio(539'051'008, 1'000'000) * ratio(1024, 1000), 1) == 552);
static_assert(rounded(ratio(916'538'368, 1'000'000) * ratio(1024, 1000), 1) == 939);

// ---- other totals ---------------------------------------------------------------------------------------------------

// Every trained number: matrices, norms, and for a sparse layer its router vector and scale.
static_assert(counted<total<Model<dense_28, size_556m>>, 543'328'256 + 28 * (2 * 1024 + 2 * 128) + 1024>());
static_assert(counted<total<Model<a4k8, size_556m>>, 2'635'765'144>());
static_assert(total<Model<a4k8, size_556m>> == 2'635'237'376 + 161 * (2 * 1024 + 2 * 128) + 1024 + 152 * (1024 + 1));
static_assert(counted<params<Model<moe_64, size_936m>>.state, 28 * 64>());  // the steering bias of each expert

// Active: a sparse layer 1/K but for its router and scale, an expert layer 6 of 64 routed and both shared.
static_assert(params<Model<a4k8, size_936m>>.active == ratio(914'411'160));
static_assert(params<Model<a4k8, size_936m>>.active ==
              ratio(total<Model<dense_28, size_936m>> +
                    152 * (1536 + 1)));  // the layers of a token are the dense model's
static_assert(params<Model<a3k16, size_936m>>.active == ratio(914'620'192));
static_assert(params<Model<moe_64, size_936m>>.active == ratio(916'930'048));
static_assert(params<Model<moe_64, size_936m>>.active ==
              ratio(total<Model<dense_28, size_936m>> - 28 * 3 * 1536 * (3840 - 8 * 480) + 28 * 64 * 1536));
static_assert(params<Model<selected_q_a4k8, size_936m>>.active == ratio(1'332'792'984));

// A loop owns its weights once.
static_assert(matrices<Model<dense * 4_c + loop<2>(dense * 4_c), size_165m>> ==
              matrices<Model<dense * 8_c, size_165m>>);
static_assert(Model<dense * 4_c + loop<2>(dense * 4_c), size_165m>::layers == 12);

}  // namespace
