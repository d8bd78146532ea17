// SPDX-License-Identifier: MIT
// FLOPs and key-value rows of the X-MoD paper's tables, at 32,768 tokens, with the printed values beside them.
#include "printed.hpp"

namespace {

using namespace sdepth;
using namespace sdepth::literals;
using namespace sdepth::presets;
using namespace sdepth_test;

// ---- forward FLOPs of a token (Tables 6, 11) ------------------------------------------------------------------------

static_assert(token_flops<Model<dense_28, size_556m>> == ratio(8'396'996'608));  // 8.4e9
static_assert(token_flops<Model<mod_k8, size_556m>> == ratio(7'692'353'536));    // 7.7e9
static_assert(token_flops<Model<moe_64, size_556m>> == ratio(8'400'666'624));    // 8.4e9
static_assert(token_flops<Model<a4k8, size_556m>> == ratio(3'934'257'152));      // 3.9e9
static_assert(token_flops<Model<moe_128, size_556m>> == ratio(8'404'336'640));   // 8.4e9
static_assert(token_flops<Model<a3k16, size_556m>> == ratio(3'867'148'288));     // 3.9e9

static_assert(token_flops<Model<dense_28, size_936m>> == ratio(9'035'579'392));  // 9.0e9
static_assert(token_flops<Model<mod_k8, size_936m>> == ratio(8'330'936'320));    // 8.3e9
static_assert(token_flops<Model<moe_64, size_936m>> == ratio(9'041'084'416));    // 9.0e9
static_assert(token_flops<Model<a4k8, size_936m>> == ratio(4'572'839'936));      // 4.6e9
static_assert(token_flops<Model<moe_128, size_936m>> == ratio(9'046'589'440));   // 9.0e9
static_assert(token_flops<Model<a3k16, size_936m>> == ratio(4'505'731'072));     // 4.5e9

static_assert(token_flops<Model<dense_28, size_1650m>> == ratio(10'334'765'056));  // 1.0e10
static_assert(token_flops<Model<mod_k8, size_1650m>> == ratio(9'630'121'984));     // 9.6e9
static_assert(token_flops<Model<moe_64, size_1650m>> == ratio(10'342'105'088));    // 1.0e10
static_assert(token_flops<Model<a4k8, size_1650m>> == ratio(5'872'025'600));       // 5.9e9
static_assert(token_flops<Model<moe_128, size_1650m>> == ratio(10'349'445'120));   // 1.0e10
static_assert(token_flops<Model<a3k16, size_1650m>> == ratio(5'804'916'736));      // 5.8e9

// Eq. 24 with its constants read off one layer: 2 W for products, 4 H h for each key.
static_assert(token_flops<Model<a4k8, size_936m>> ==
              ratio(28 * 2 * 27'131'904) + ratio(4LL * 32'768 * 16 * 128) * (ratio(9) + ratio(152, 64)));

// ---- phi / phi_D and tokens at equal training FLOPs (Tables 1, 7) ---------------------------------------------------

using Dense556 = Model<dense_28, size_556m>;
using Dense936 = Model<dense_28, size_936m>;
using Dense1650 = Model<dense_28, size_1650m>;
template <class M, class Reference>
constexpr ratio relative = token_flops<M> / token_flops<Reference>;
template <class M, class Reference>
constexpr long long phi = rounded(relative<M, Reference>, 10'000);

static_assert(phi<Model<a4k8, size_556m>, Dense556> == 4'685);        // 0.47
static_assert(phi<Model<a3k16, size_556m>, Dense556> == 4'605);       // 0.46
static_assert(phi<Model<a4k8, size_936m>, Dense936> == 5'061);        // 0.51
static_assert(phi<Model<a3k16, size_936m>, Dense936> == 4'987);       // 0.50
static_assert(phi<Model<a4k8, size_1650m>, Dense1650> == 5'682);      // 0.57
static_assert(phi<Model<a3k16, size_1650m>, Dense1650> == 5'617);     // 0.56
static_assert(phi<Model<mod_k8, size_556m>, Dense556> == 9'161);      // 0.92
static_assert(phi<Model<mod_k8, size_936m>, Dense936> == 9'220);      // 0.92
static_assert(phi<Model<mod_k8, size_1650m>, Dense1650> == 9'318);    // 0.93
static_assert(phi<Model<moe_64, size_556m>, Dense556> == 10'004);     // 1.00
static_assert(phi<Model<moe_128, size_1650m>, Dense1650> == 10'014);  // 1.00

static_assert(relative<Model<routed_ffn_a4k8, size_936m>, Dense936> == ratio(1));   // 1.00
static_assert(relative<Model<routed_ffn_a3k16, size_936m>, Dense936> == ratio(1));  // 1.00
static_assert(phi<Model<selected_q_a4k8, size_936m>, Dense936> == 10'926);          // 1.09
static_assert(phi<Model<selected_q_a3k16, size_936m>, Dense936> == 11'880);         // 1.19

// Tokens at equal FLOPs, D / D_D = phi_D / phi (Table 7). Three printed values, 1.09, 1.96 and 2.00, are inverses of
// the rounded column beside them, 1 / 0.92, 1 / 0.51 and 1 / 0.50, not of the ratio.
template <class M>
constexpr long long tokens = rounded(token_flops<Dense936> / token_flops<M>, 100);
static_assert(tokens<Dense936> == 100);                            // 1.00
static_assert(tokens<Model<mod_k8, size_936m>> == 108);            // 1.09
static_assert(tokens<Model<routed_ffn_a4k8, size_936m>> == 100);   // 1.00
static_assert(tokens<Model<routed_ffn_a3k16, size_936m>> == 100);  // 1.00
static_assert(tokens<Model<selected_q_a4k8, size_936m>> == 92);    // 0.92
static_assert(tokens<Model<selected_q_a3k16, size_936m>> == 84);   // 0.84
static_assert(tokens<Model<a4k8, size_936m>> == 198);              // 1.96
static_assert(tokens<Model<a3k16, size_936m>> == 201);             // 2.00
static_assert(rounded(ratio(100, 92), 100) == 109 && rounded(ratio(100, 51), 100) == 196);

// Tokens of Selected-Q against full X-MoD: printed 46.8 % is 0.51 / 1.09, of rounded ratios; 42.0 % agrees.
static_assert(rounded(token_flops<Model<a4k8, size_936m>> / token_flops<Model<selected_q_a4k8, size_936m>>, 1000) ==
              463);
static_assert(rounded(ratio(51, 109), 1000) == 468);
static_assert(rounded(token_flops<Model<a3k16, size_936m>> / token_flops<Model<selected_q_a3k16, size_936m>>, 1000) ==
              420);

// Depth extension (Table 9): 0.67, 0.62, 0.60, 0.59.
using DeepDense = Model<deep_dense, size_165m>;
static_assert(phi<Model<deep_a1k4, size_165m>, DeepDense> == 6'730);
static_assert(phi<Model<deep_a1k8, size_165m>, DeepDense> == 6'185);
static_assert(phi<Model<deep_a1k12, size_165m>, DeepDense> == 6'003);
static_assert(phi<Model<deep_a1k16, size_165m>, DeepDense> == 5'913);

// ---- share of attention (Eq. 40) ------------------------------------------------------------------------------------

template <class M>
constexpr ratio mixing = flops<M, Run{.seq = 32768}>.paper_mixing.per_token();
template <class M>
constexpr long long attention_share = rounded(mixing<M> / token_flops<M>, 10'000);
static_assert(attention_share<Dense556> == 8'951);   // f 0.89-0.90
static_assert(attention_share<Dense936> == 8'318);   // 0.83
static_assert(attention_share<Dense1650> == 7'273);  // 0.72-0.73

template <class M>
constexpr ratio attention_left = mixing<M> / mixing<Dense936>;
static_assert(attention_left<Model<a4k8, size_936m>> == (ratio(9) + ratio(152, 64)) / ratio(28));
static_assert(attention_left<Model<a3k16, size_936m>> == (ratio(10) + ratio(288, 256)) / ratio(28));
static_assert(attention_left<Model<mod_k8, size_936m>> == (ratio(25) + ratio(24, 64)) / ratio(28));
static_assert(rounded(attention_left<Model<a4k8, size_936m>>, 1000) == 406);    // 0.406
static_assert(rounded(attention_left<Model<a3k16, size_936m>>, 1000) == 397);   // 0.397
static_assert(rounded(attention_left<Model<mod_k8, size_936m>>, 1000) == 906);  // 0.906

// With documents of 1,000 tokens attention is .131 of the dense model, and A4K8 saves 8 % instead of 49 %.
constexpr Run short_documents{.seq = 32768, .document = 1000};
constexpr flop_counts dense_short = flops<Dense936, short_documents>;
constexpr flop_counts a4k8_short = flops<Model<a4k8, size_936m>, short_documents>;
static_assert(rounded(dense_short.paper_mixing.sequence / dense_short.paper.sequence, 1000) == 131);
static_assert(rounded(a4k8_short.paper.sequence / dense_short.paper.sequence, 1000) == 922);

// ---- keys and values, and the alignment table of the review -------------------------------------------------------

// bf16 keys and values in units of one dense layer's.
template <class M>
constexpr ratio kept_layers = state<M, Run{.seq = 32768}>.kv_expected / ratio(2LL * 2 * 8 * 128 * 32'768);
static_assert(kept_layers<Dense936> == ratio(28));
static_assert(kept_layers<Model<a4k8, size_936m>> == ratio(28));   // 9 + 152/8
static_assert(kept_layers<Model<a3k16, size_936m>> == ratio(28));  // 10 + 288/16
static_assert(kept_layers<Model<mod_k8, size_936m>> == ratio(28));
static_assert(kept_layers<Model<routed_ffn_a4k8, size_936m>> == ratio(28));
static_assert(kept_layers<Model<selected_q_a4k8, size_936m>> == ratio(161));  // every token keeps keys in every layer

// A4K8 against Dense and experts: active layers, inference FLOPs, kept keys, parameters, tokens at equal C, depth.
using A4K8 = Model<a4k8, size_936m>;
static_assert(active_layers<A4K8> == active_layers<Dense936>);
static_assert(relative<A4K8, Dense936> == ratio(623, 1231));
static_assert(kept_layers<A4K8> == kept_layers<Dense936>);
static_assert(rounded(ratio(matrices<A4K8>, matrices<Model<moe_64, size_936m>>), 100) == 100);
static_assert(tokens<A4K8> == 198);
static_assert(A4K8::layers == 161 && Dense936::layers == 28);

// ---- our own conventions at the same length -------------------------------------------------------------------------

// Causal pairs, the head, and every router: forward; training adds backward, 2 x for products and 2.5 x for pairs.
constexpr flop_counts xmod = flops<Model<a4k8, size_936m>, Run{.seq = 32768}>;
static_assert(xmod.training.per_token() == ratio(10'366'673'920));
static_assert(xmod.useful.sequence == xmod.forward.sequence * ratio(3));
static_assert(flops<Model<dense_28, size_936m>, Run{.seq = 32768}>.training.per_token() == ratio(18'175'067'136));
static_assert(flops<Model<moe_128, size_936m>, Run{.seq = 32768}>.training.per_token() == ratio(18'208'097'280));
static_assert(flops<Model<selected_q_a4k8, size_936m>, Run{.seq = 32768}>.training.per_token() ==
              ratio(20'686'758'912));

// A loop works once a pass.
static_assert(token_flops<Model<dense * 4_c + loop<2>(dense * 4_c), size_165m>> ==
              token_flops<Model<dense * 12_c, size_165m>>);

}  // namespace
