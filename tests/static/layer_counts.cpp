// SPDX-License-Identifier: MIT
// The numbers of one layer of each kind under each policy that adds tensors, counted by hand.
#include "printed.hpp"

namespace {

using namespace sdepth;
using namespace sdepth_test;

constexpr Dims d{.width = 64, .head_dim = 16, .heads = 4, .kv_heads = 2, .ffn = 128, .expert_ffn = 32, .vocab = 256};

struct layer_numbers {
    long long trained = 0, untrained = 0, matrices = 0;
    friend constexpr bool operator==(const layer_numbers&, const layer_numbers&) = default;
};
template <class Part>
constexpr layer_numbers numbers() {
    detail::tensor_sums sum;
    sum.add(Part::tensors(d));
    return {sum.total.value(), sum.state.value(), sum.paper.value()};
}
template <pattern P>
constexpr layer_numbers numbers(P) {
    return numbers<P>();
}
constexpr layer_numbers plus(layer_numbers a, long long trained, long long untrained = 0, long long matrices = 0) {
    return {a.trained + trained, a.untrained + untrained, a.matrices + matrices};
}

// ---- attention: q 64 x 64, k and v 32 x 64, o 64 x 64 ---------------------------------------------------------------

constexpr layer_numbers bare{12'288, 0, 12'288};
static_assert(numbers<Attention<attention_policy{.norm = qk_norm::none}>>() == bare);
static_assert(numbers<Attention<>>() == plus(bare, 16 + 16));
static_assert(numbers<Attention<attention_policy{.norm = qk_norm::full_width}>>() == plus(bare, 64 + 32));
static_assert(numbers<Attention<attention_policy{.norm = qk_norm::none, .biases = true}>>() ==
              plus(bare, 64 + 32 + 32 + 64));
static_assert(numbers<Attention<attention_policy{.norm = qk_norm::none, .rotary = false, .window = 8}>>() == bare);

// ---- feed-forward parts ---------------------------------------------------------------------------------------------

static_assert(numbers<SwiGLU<>>() == layer_numbers{24'576, 0, 24'576});
static_assert(numbers<SwiGLU<ffn_policy{.biases = true}>>() == layer_numbers{24'576 + 128 + 128 + 64, 0, 24'576});
static_assert(numbers<MLP<>>() == layer_numbers{16'384, 0, 16'384});
static_assert(numbers<MLP<activation::relu, ffn_policy{.biases = true}>>() ==
              layer_numbers{16'384 + 128 + 64, 0, 16'384});
static_assert(numbers<None>() == layer_numbers{});

// ---- blocks: one norm a part ----------------------------------------------------------------------------------------

constexpr layer_numbers dense_layer{12'320 + 24'576 + 2 * 64, 0, 36'864};
static_assert(numbers(dense) == dense_layer && dense_layer.trained == 37'024);
static_assert(numbers(attention_only) == layer_numbers{12'320 + 64, 0, 12'288});
static_assert(numbers(ffn_only) == layer_numbers{24'576 + 64, 0, 24'576});
static_assert(numbers(layer<Attention<>, SwiGLU<>, block_policy{.norm = norm_place::post}>) == dense_layer);

// ---- sparse depth: a router vector, a scale, a tracked cut ----------------------------------------------------------

static_assert(numbers(sparse<8>) == plus(dense_layer, 64 + 1, 1));
static_assert(numbers(sparse<8, printed_policy>) == plus(dense_layer, 64 + 1));
static_assert(numbers(mod<8>) == plus(dense_layer, 64, 1));
static_assert(numbers(sparse<8, printed_mod_policy>) == plus(dense_layer, 64));
static_assert(numbers(sparse<8, sparse_policy{.gate = gate_form::none, .bias = false}>) == plus(dense_layer, 65, 1));
static_assert(numbers(sparse<8, sparse_policy{.keys = key_scope::full}>) == plus(dense_layer, 65, 1));
static_assert(numbers(sparse<8>(ffn_only)) == layer_numbers{24'576 + 64 + 65, 1, 24'576});

// Active share of each tensor: 1/8, but all of router and scale, and with full keys all of k and v.
constexpr ratio active(const tensor_rows& rows) {
    ratio sum;
    for (const tensor_row& row : rows) {
        if (row.trained) sum += row.active * ratio(row.elements());
    }
    return sum;
}
static_assert(active(Sparse<8>::tensors(d)) == ratio(37'024, 8) + ratio(65));
static_assert(active(Sparse<8, Dense, sparse_policy{.keys = key_scope::full}>::tensors(d)) ==
              ratio(37'024 - 4'096, 8) + ratio(4'096 + 65));
static_assert(active(Sparse<3>::tensors(d)) == ratio(37'024 + 3 * 65, 3), "a rational number");

// ---- experts: 3 x 64 x 32 each, a router row each -------------------------------------------------------------------

constexpr layer_numbers eight{8 * 6'144 + 512, 0, 8 * 6'144 + 512};
template <moe_policy P>
constexpr layer_numbers experts = numbers<Experts<8, 2, detail::evaluated(P)>>();
static_assert(experts<moe_policy{}> == eight);
static_assert(experts<moe_policy{.shared = 2}> == plus(eight, 2 * 6'144, 0, 2 * 6'144));
static_assert(experts<moe_policy{.shared = 2, .shared_ffn = 48}> == plus(eight, 2 * 9'216, 0, 2 * 9'216));
static_assert(experts<moe_policy{.steering = true}> == plus(eight, 0, 8));
static_assert(experts<moe_policy{.noisy = true}> == plus(eight, 512, 0, 512));
static_assert(experts<steered_policy> == plus(eight, 2 * 6'144, 8, 2 * 6'144));
static_assert(experts<moe_policy{.choice = expert_choice::balanced, .z_loss_weight = 1e-3, .capacity = 1.25}> == eight);
static_assert(active(Experts<8, 2, steered_policy>::tensors(d)) == ratio((2 + 2) * 6'144 + 512));
static_assert(active(Experts<8, 3>::tensors(d)) == ratio(3 * 6'144 + 512));
static_assert(numbers(moe<8, 2>) == layer_numbers{12'320 + 128 + eight.trained, 0, 12'288 + eight.matrices});

// Experts under sparse depth: routed k/E of 1/K.
static_assert(active(std::remove_cvref_t<decltype(sparse<4>(moe<8, 2>))>::tensors(d)) ==
              ratio(12'320 + 128 + 2 * 6'144 + 512, 4) + ratio(65));

// ---- recurrent mixers -----------------------------------------------------------------------------------------------

// S4: A, B, C of 64 x 64 each, D and step of 64, an output projection.
static_assert(numbers<S4<>>() == layer_numbers{3 * 4'096 + 2 * 64 + 4'096, 0, 4'096});
static_assert(numbers<S4<s4_policy{.state = 16}>>() == layer_numbers{3 * 1'024 + 2 * 64 + 4'096, 0, 4'096});

// Mamba: 128 channels, 16 states, step rank 4: in 256 x 64, x 36 x 128, step 128 x 4 and out 64 x 128 are matrices;
// convolution 128 x 4 with bias, step bias, A 128 x 16, D.
static_assert(numbers<Mamba<>>() == layer_numbers{16'384 + 4'608 + 512 + 8'192 + 512 + 128 + 128 + 2'048 + 128, 0,
                                                  16'384 + 4'608 + 512 + 8'192});
static_assert(numbers<Mamba<mamba_policy{.state = 8, .conv = 3, .expand = 1, .step_rank = 5}>>() ==
              layer_numbers{8'192 + 21 * 64 + 320 + 4'096 + 192 + 64 + 64 + 512 + 64, 0,
                            8'192 + 21 * 64 + 320 + 4'096});
static_assert(numbers(mamba).trained == numbers<Mamba<>>().trained + 64, "one norm, no feed-forward part");

// Mamba-2: 128 channels in 2 heads, 128 states: in (128 + 384 + 2) x 64; 384 convolved channels, with bias.
static_assert(numbers<Mamba2<>>() ==
              layer_numbers{514 * 64 + 384 * 4 + 384 + 3 * 2 + 128 + 8'192, 0, 514 * 64 + 8'192});
static_assert(numbers<Mamba2<mamba2_policy{.state = 16, .conv = 2, .head_dim = 32, .groups = 2}>>() ==
              layer_numbers{(128 + 192 + 4) * 64 + 192 * 2 + 192 + 3 * 4 + 128 + 8'192, 0, 324 * 64 + 8'192});

// Linear attention: four 64 x 64 projections, a forget gate a head with bias.
static_assert(numbers<LinearAttention<>>() == layer_numbers{4 * 4'096 + 256 + 4, 0, 4 * 4'096 + 256});
static_assert(numbers<LinearAttention<linear_attention_policy{.gated = false}>>() ==
              layer_numbers{4 * 4'096, 0, 4 * 4'096});
static_assert(numbers<LinearAttention<linear_attention_policy{.heads = 2, .key_dim = 8, .value_dim = 32}>>() ==
              layer_numbers{2 * 16 * 64 + 2 * 64 * 64 + 128 + 2, 0, 2 * 16 * 64 + 2 * 64 * 64 + 128});

// Gated delta rule: q, k, v, output gate and output 64 x 64; decay and step rows; three convolutions; a head's norm.
static_assert(numbers<GatedDelta<>>() ==
              layer_numbers{5 * 4'096 + 2 * 256 + 3 * 256 + 4 + 4 + 16, 0, 5 * 4'096 + 2 * 256});
static_assert(numbers<GatedDelta<gated_delta_policy{.output_gate = false}>>().trained ==
              numbers<GatedDelta<>>().trained - 4'096);
static_assert(numbers<GatedDelta<gated_delta_policy{.value_heads = 8}>>() ==
              layer_numbers{2 * 4'096 + 3 * 8'192 + 2 * 512 + (64 + 64 + 128) * 4 + 8 + 8 + 16, 0,
                            2 * 4'096 + 3 * 8'192 + 2 * 512});

// ---- depth attention: key and value projections of 32 x 64 for each slot that has its own ---------------------------

template <moda_policy P>
constexpr layer_numbers slots = numbers<DepthAttention<detail::evaluated(P)>>();
constexpr layer_numbers reuse{12'320, 0, 12'288};
static_assert(slots<moda_policy{.ffn = false}> == reuse);
static_assert(slots<moda_policy{}> == plus(reuse, 4'096, 0, 4'096));
static_assert(slots<moda_policy{.attention = attention_slot::projected}> == plus(reuse, 8'192, 0, 8'192));
static_assert(slots<moda_policy{.attention = attention_slot::none, .ffn = false}> == reuse);
static_assert(slots<moda_policy{.slots = 4, .joint = false}> == slots<moda_policy{}>);
static_assert(numbers<DepthAttention<moda_policy{}, attention_policy{.norm = qk_norm::none, .biases = true}>>() ==
              layer_numbers{12'288 + 192 + 4'096 + 64, 0, 12'288 + 4'096});
static_assert(numbers(moda_last) == dense_layer);

// ---- ends -----------------------------------------------------------------------------------------------------------

constexpr Dims tied{.width = 64, .head_dim = 16, .heads = 4, .ffn = 128, .vocab = 256, .tied = true};
constexpr Dims untied{.width = 64, .head_dim = 16, .heads = 4, .ffn = 128, .vocab = 256};
static_assert(total<Model<dense, untied>> - total<Model<dense, tied>> == 256 * 64);
static_assert(matrices<Model<dense, tied>> == 16'384 + 24'576 + 256 * 64, "four full projections, for kv_heads = 0");
static_assert(params<Model<dense, tied>>.of(role::head) == 0);
static_assert(params<Model<dense, tied>>.of(role::embedding) == 16'384);
static_assert(params<Model<dense, untied>>.of(role::norm) == 2 * 64 + 2 * 16 + 64);

}  // namespace
