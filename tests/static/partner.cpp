// SPDX-License-Identifier: MIT
// Partners of a model as types, and what is equal between two models.
#include "sdepth/partner.hpp"

#include <type_traits>

#include "sdepth/alignment.hpp"
#include "sdepth/planner.hpp"
#include "sdepth/presets.hpp"

namespace {

using namespace sdepth;
using namespace sdepth::literals;

constexpr Run at_32k{.seq = 32768};
using Dense936 = Model<presets::dense_28, presets::size_936m>;
using Mod = Model<presets::mod_k8, presets::size_936m>;
using A4K8 = Model<presets::a4k8, presets::size_936m>;
using A3K16 = Model<presets::a3k16, presets::size_936m>;
using Routed = Model<presets::routed_ffn_a4k8, presets::size_936m>;
using Moe64 = Model<presets::moe_64, presets::size_936m>;

// Equal active depth: 28 layers for all of the paper's models, sparse ones counted 1/K.
static_assert(active_depth<A4K8> == ratio(28) && active_depth<A3K16> == ratio(28) && active_depth<Mod> == ratio(28));
static_assert(active_depth<Routed> == ratio(28) && active_depth<Moe64> == ratio(28));
static_assert(active_layers<Routed> == ratio(47), "attention and feed-forward part are layers of their own there");
static_assert(active_depth<Model<dense + sparse<4> * 6_c + dense, presets::size_936m>> == ratio(7, 2));
static_assert(std::is_same_v<equal_active<A4K8>, Dense936> && std::is_same_v<equal_active<Mod>, Dense936>);
static_assert(std::is_same_v<equal_active<Routed>, Dense936> && std::is_same_v<equal_active<Moe64>, Dense936>);
static_assert(std::is_same_v<equal_active<A4K8, std::remove_const_t<decltype(moe<64, 6, steered_policy>)>>, Moe64>);

// Table 7: phi/phi_D and D/D_D as exact ratios whose product is 1.
constexpr bool prints(ratio value, long long hundredths) {
    const double miss = value.value() * 100 - static_cast<double>(hundredths);
    return -0.5 <= miss && miss <= 0.5;
}
template <class M>
constexpr matched_ratios to_dense = matched<M, equal_active<M>, at_32k>;
static_assert(prints(to_dense<A4K8>.flops, 51) && prints(to_dense<A3K16>.flops, 50) && prints(to_dense<Mod>.flops, 92));
static_assert(prints(to_dense<Routed>.flops, 100) && prints(to_dense<Moe64>.flops, 100));
static_assert(prints(to_dense<A3K16>.tokens, 201), "printed 2.00, the quotient of rounded numbers");
static_assert(prints(to_dense<A4K8>.tokens, 198), "printed 1.96, the quotient of rounded numbers");
static_assert(to_dense<A4K8>.flops * to_dense<A4K8>.tokens == ratio(1));
static_assert(to_dense<A3K16>.flops * to_dense<A3K16>.tokens == ratio(1));
static_assert(to_dense<Dense936>.flops == ratio(1));

constexpr auto dense_14 = dense * 14_c;
constexpr auto dense_161 = dense * 161_c;

// Equal FLOPs: a layer costs 9.036e9/28 = 3.227e8, A4K8 4.573e9 = 14.17 layers.
static_assert(std::is_same_v<equal_flops<A4K8, at_32k>, Model<dense_14, presets::size_936m>>);
static_assert(std::is_same_v<equal_flops<Dense936, at_32k>, Dense936>);
static_assert(prints(matched<A4K8, equal_flops<A4K8, at_32k>, at_32k>.flops, 101));
// Equal FLOPs depends on the length: at 2k attention is cheap, and A4K8 costs 23.9 layers.
static_assert(equal_flops<A4K8, Run{.seq = 2048}>::layers == 24);

// Equal parameters: (4,522,626,048 - 154,389,504) / 27,131,904 = 161 layers, norms and routers aside; or the same
// depth and a wider feed-forward part. No neighbour comes nearer.
static_assert(std::is_same_v<equal_params<A4K8>, Model<dense_161, presets::size_936m>>);
static_assert(std::is_same_v<equal_params<Dense936>, Dense936>);
static_assert(std::is_same_v<equal_params_wider<Dense936>, Dense936>);
using Wide = equal_params_wider<A4K8>;
constexpr long long off(long long total) {
    const long long miss = total - params<A4K8>.total;
    return miss < 0 ? -miss : miss;
}
constexpr Dims widened(long long by) {
    Dims d = Wide::dims;
    d.ffn += by;
    return d;
}
static_assert(Wide::layers == 28 && Wide::dims.ffn % 64 == 0 && Wide::dims.width == 1536);
static_assert(off(params<Wide>.total) < off(params<Model<presets::dense_28, widened(64)>>.total));
static_assert(off(params<Wide>.total) < off(params<Model<presets::dense_28, widened(-64)>>.total));
// The wide partner of an expert model needs no `Dims::ffn` of the expert model.
constexpr Dims experts_only{.width = 256, .head_dim = 64, .heads = 4, .expert_ffn = 128, .vocab = 1000};
static_assert(equal_params_wider<Model<moe<8, 2> * 4_c, experts_only>>::dims.ffn == 1024);

// The seven axes: active parameters and keys equal, all else not; Dense936 against itself equal on each axis.
constexpr alignment_table table = alignment<A4K8, Dense936, at_32k>;
static_assert(table.active.equal() && table.active.first == ratio(914'082'816));
static_assert(table.kv.equal() && table.kv.first == ratio(28 * 2 * 8 * 128 * 2));
static_assert(prints(table.compute.quotient(), 51) &&
              table.compute.first == ratio(3) * flops<A4K8, at_32k>.paper.per_token());
static_assert(table.inference.first == flops<A4K8, at_32k>.forward.per_token() && !table.inference.equal());
static_assert(prints(table.total.quotient(), 495));
static_assert(table.tokens.quotient() * table.compute.quotient() == ratio(1));
static_assert(table.depth.first == ratio(161) && table.depth.second == ratio(28));
constexpr bool all_equal(const alignment_table& t) {
    for (const aligned_axis& axis : t.axes()) {
        if (!axis.equal() || axis.name.empty()) return false;
    }
    return true;
}
static_assert(all_equal(alignment<Dense936, Dense936, at_32k>) && !all_equal(table));
// Against experts: about equal parameters, twice the tokens.
constexpr alignment_table to_moe = alignment<A4K8, Moe64, at_32k>;
static_assert(prints(to_moe.total.quotient(), 100) && prints(to_moe.tokens.quotient(), 198) && to_moe.kv.equal());
// A model without keys.
constexpr alignment_table no_keys = alignment<Model<mamba * 4_c, presets::size_936m>, Dense936, at_32k>;
static_assert(no_keys.kv.first == ratio(0) && no_keys.kv.quotient() == ratio(0));
constexpr alignment_table keys = alignment<Dense936, Model<mamba * 4_c, presets::size_936m>, at_32k>;
static_assert(keys.kv.quotient().overflowed());

}  // namespace
