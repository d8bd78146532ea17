// SPDX-License-Identifier: MIT
// The model type: the formula program of the README, and verdicts as data.
#include "sdepth/model.hpp"

#include "sdepth/sdepth.hpp"

namespace {

using namespace sdepth;
using namespace sdepth::literals;

constexpr auto a4k8 = dense * 4_c + (sparse<8> * 24_c + dense) + (sparse<8> * 32_c + dense) * 4_c;
using M = Model<a4k8, Dims{.width = 1024, .head_dim = 128, .heads = 16, .kv_heads = 8, .ffn = 3072, .vocab = 50257}>;
static_assert(M::valid && is_causal<M>);
static_assert(M::layers == 161 && M::ffn_layers == 161);
static_assert(counted<params<M>.paper, 2'635'237'376>());
static_assert(counted<params<M>.total, 2'635'765'144>());
static_assert(params<M>.state == 152);
static_assert(flops<M, Run{.seq = 32768}>.paper.per_token() == 3'934'257'152);

template <auto P>
constexpr verdict judge(Dims d) {
    return check<decltype(P)>(d);
}
constexpr bool breaks(verdict v, rule r, long long layer, long long a = 0, long long b = 0) {
    return v.broken == r && v.layer == layer && v.a == a && v.b == b;
}
constexpr Dims small{
    .width = 64, .head_dim = 16, .heads = 4, .kv_heads = 2, .ffn = 128, .expert_ffn = 32, .vocab = 256};

static_assert(judge<dense * 2_c + sparse<4> * 4_c + dense>(small).ok());
static_assert(breaks(judge<dense * 3_c + sparse<4> * 4_c>(small), rule::sparse_needs_anchor, 4, 4));
static_assert(judge<dense + sparse<4, sparse_policy{.clear_every = 4}> * 4_c>(small).ok());
static_assert(judge<dense + sparse<4, sparse_policy{.bias = false}> * 4_c>(small).ok());
static_assert(breaks(judge<dense * 2_c + sparse<4>(sparse<2>) + dense>(small), rule::sparse_in_sparse, 3, 4, 2));
static_assert(breaks(judge<dense + sparse<0> + dense>(small), rule::sparsity_at_least_one, 2, 0));
static_assert(breaks(judge<dense + moe<4, 5>>(small), rule::experts_within_range, 2, 5, 4));
static_assert(breaks(judge<dense + moe<4, 1>>(small), rule::top_one_not_renormalised, 2, 4));
static_assert(judge<dense + moe<4, 1, switch_policy>>(small).ok());
static_assert(breaks(judge<dense * 0_c + dense>(small), rule::repeat_of_nothing, 1, 0));
static_assert(breaks(judge<dense + loop<0>(dense)>(small), rule::repeat_of_nothing, 2, 0));
static_assert(breaks(judge<dense + moda_last>(small), rule::depth_has_slots, 2));
static_assert(judge<moda * 3_c + moda_last>(small).ok());
static_assert(judge<(moda + mamba) * 2_c>(small).ok());

constexpr Dims with_heads(long long heads) {
    Dims d = small;
    d.heads = heads;
    return d;
}
static_assert(breaks(judge<mamba * 2_c + dense>(with_heads(5)), rule::kv_heads_divide_heads, 3, 5, 2));
static_assert(breaks(judge<mamba * 2_c + dense>(with_heads(0)), rule::size_not_positive, 3,
                     static_cast<long long>(size_name::heads), 0));
static_assert(breaks(judge<dense * 9'000'000'000'000'000_c>(small), rule::counts_fit, 1, count::largest));

// Routers that see the future are marked in the type.
constexpr auto expert_choice_layer = moe<4, 2, moe_policy{.choice = expert_choice::by_expert}>;
static_assert(!is_causal<Model<dense + expert_choice_layer, small>>);
static_assert(is_causal<Model<dense + moe<4, 2>, small>>);

}  // namespace
