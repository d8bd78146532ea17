// SPDX-License-Identifier: MIT
// Parameters and FLOPs of the MoDA paper, with the printed values beside them.
#include "printed.hpp"
#include "sdepth/ops/depth_attention.hpp"

namespace {

using namespace sdepth;
using namespace sdepth::literals;
using namespace sdepth::presets;
using namespace sdepth_test;

// ---- parameters (Table 3; that paper counts norms too, tied embeddings once) ----------------------------------------

static_assert(counted<total<Model<olmo_36, size_700m>>, 669'045'760>());       // 669.0M
static_assert(counted<total<Model<olmo_38, size_700m>>, 700'510'208>());       // 700.5M
static_assert(counted<total<Model<moda_reuse, size_700m>>, 669'045'760>());    // 669.0M: reuse adds no weight
static_assert(counted<total<Model<moda_ffn_kv, size_700m>>, 705'745'920>());   // 705.7M
static_assert(counted<total<Model<moda_both_kv, size_700m>>, 742'446'080>());  // 742.4M
static_assert(total<Model<moda_ffn_kv, size_700m>> - total<Model<moda_reuse, size_700m>> ==
              36'700'160);  // +36.7M, 35 layers: the last one writes no slot
static_assert(total<Model<moda_both_kv, size_700m>> - total<Model<moda_ffn_kv, size_700m>> == 36'700'160);
static_assert(36'700'160 == 35 * 2 * 1024 * 512);

// ---- FLOPs of a 4,096-token sequence: forward, all key pairs, output head -------------------------------------------

template <class M>
constexpr long long sequence_flops = [] {
    const ratio sequence = flops<M, Run{.seq = 4096}>.paper_with_head.sequence;
    return sequence.den() == 1 ? sequence.num() : -1;
}();
// Printed 8.01, 8.41, 8.02, 8.33 and 8.63 T: some .06 T above any count of these layers, so that only the increments
// of the last three, +0.01, +0.32 and +0.62, can be reached.
static_assert(counted<sequence_flops<Model<olmo_36, size_700m>>, 7'953'658'675'200>());
static_assert(counted<sequence_flops<Model<olmo_38, size_700m>>, 8'348'795'666'432>());
static_assert(counted<sequence_flops<Model<moda_reuse, size_700m>> - sequence_flops<Model<olmo_36, size_700m>>,
                      10'569'646'080>());
static_assert(counted<sequence_flops<Model<moda_ffn_kv, size_700m>> - sequence_flops<Model<olmo_36, size_700m>>,
                      321'787'002'880>());
static_assert(counted<sequence_flops<Model<moda_both_kv, size_700m>> - sequence_flops<Model<olmo_36, size_700m>>,
                      622'434'713'600>());
// Two more layers: printed +0.40.
static_assert(rounded(ratio(sequence_flops<Model<olmo_38, size_700m>> - sequence_flops<Model<olmo_36, size_700m>>,
                            1'000'000'000'000),
                      100) == 40);

// Layer l reads the slots of layers before it at the same position: 0 + 1 + ... + 35 of them, times 4 H h.
static_assert(10'569'646'080 == 4096LL * 4 * 1024 * (35 * 36 / 2));

// ---- small models (Table 6) -----------------------------------------------------------------------------------------

static_assert(counted<total<Model<small_48, size_small>>, 123'378'048>());       // 123.38M
static_assert(counted<total<Model<small_24, size_small>>, 71'347'584>());        // 71.35M
static_assert(counted<total<Model<small_moda_48, size_small>>, 128'108'928>());  // 128.11M
static_assert(
    counted<total<Model<small_moda_24, size_small>>, 73'713'024>());  // 73.72M: the sum of the rounded 71.35 + 2.37
static_assert(total<Model<small_moda_48, size_small>> - total<Model<small_48, size_small>> == 4'730'880);
static_assert(total<Model<small_moda_24, size_small>> - total<Model<small_24, size_small>> == 2'365'440);

// Pre- and post-norm have the same numbers.
constexpr auto small_pre_48 = layer<Attention<small_attention>, SwiGLU<small_ffn>> * 48_c;
static_assert(total<Model<small_pre_48, size_small>> == total<Model<small_48, size_small>>);

// Printed 136.61 -> 144.00 G and 78.19 -> 81.24 G: half attention over 512 tokens comes nearest and does not close.
template <class M>
constexpr long long small_flops = rounded(flops<M, Run{.seq = 512}>.forward.sequence / ratio(1'000'000'000), 100);
static_assert(small_flops<Model<small_48, size_small>> == 13'576 &&
              small_flops<Model<small_moda_48, size_small>> == 14'237);
static_assert(small_flops<Model<small_24, size_small>> == 7'777 &&
              small_flops<Model<small_moda_24, size_small>> == 8'062);

// ---- complexity (Table 1): parameters L D^2 / G, cache L D / G, FLOPs L^2 D
// ------------------------------------------

constexpr Dims with(long long width, long long kv_heads) {
    return {.width = width, .head_dim = 64, .heads = width / 64, .kv_heads = kv_heads, .ffn = 256, .vocab = 256};
}
constexpr Dims narrow = with(512, 8), wide = with(1024, 16), grouped = with(512, 4);
constexpr auto ten = moda * 10_c;
constexpr auto twenty = moda * 20_c;
constexpr auto plain_ten = dense * 10_c;
constexpr auto plain_twenty = dense * 20_c;
using Ten = Model<ten, narrow>;
using Twenty = Model<twenty, narrow>;
using Wide = Model<ten, wide>;
using Grouped = Model<ten, grouped>;

template <class M>
constexpr long long projections = params<M>.of(role::depth_key) + params<M>.of(role::depth_value);
static_assert(projections<Twenty> == 2 * projections<Ten>);
static_assert(projections<Wide> == 4 * projections<Ten>);
static_assert(2 * projections<Grouped> == projections<Ten>);

template <class M>
constexpr long long cache = state<M, Run{.seq = 64}>.depth_bytes;
static_assert(cache<Twenty> == 2 * cache<Ten> && cache<Wide> == 2 * cache<Ten> && 2 * cache<Grouped> == cache<Ten>);

// FLOPs of a token's slots: those of the model less those of attention alone. 2 slots a layer are read
// 2 (0 + 1 + ... + L-1) = L (L-1) times, at 4 D each, whatever G.
template <class M, class WithoutSlots>
constexpr ratio slot_flops = ratio(flops<M, Run{.seq = 64}>.paper_mixing.per_token().num() -
                                   flops<WithoutSlots, Run{.seq = 64}>.paper_mixing.per_token().num());
static_assert(slot_flops<Ten, Model<plain_ten, narrow>> == ratio(4 * 512 * 10 * 9));
static_assert(slot_flops<Twenty, Model<plain_twenty, narrow>> == ratio(4 * 512 * 20 * 19));
static_assert(slot_flops<Wide, Model<plain_ten, wide>> == ratio(4 * 1024 * 10 * 9));
static_assert(slot_flops<Grouped, Model<plain_ten, grouped>> == ratio(4 * 512 * 10 * 9));

// A slot from the input of a feed-forward part needs one.
constexpr auto no_ffn = layer<DepthAttention<>, None> + moda_last;
constexpr auto no_slot = layer<DepthAttention<moda_policy{.ffn = false}>, None> + moda_last;
constexpr verdict refused = check<std::remove_cvref_t<decltype(no_ffn)>>(narrow);
static_assert(refused.broken == rule::parts_fit && refused.layer == 1 &&
              refused.a == static_cast<long long>(part_fault::ffn_slot_without_ffn));
static_assert(check<std::remove_cvref_t<decltype(no_slot)>>(narrow).ok());

// ---- products of a block with slots (its kernels) -------------------------------------------------------------------

// Counted one by one: row i is of token i / group, slot j of token j / slots.
template <int chunk, int group>
constexpr bool counted_so(int slots) {
    long long seen = 0, computed = 0;
    for (int i = 0; i < chunk; ++i)
        for (int j = 0; j < chunk / group * slots; ++j, ++computed) seen += i / group == j / slots;
    const slot_products said = block_slot_products<chunk, group>(slots);
    return said.seen == seen && said.computed == computed && seen * chunk == computed * group;
}
static_assert(counted_so<64, 1>(8) && counted_so<64, 2>(8) && counted_so<64, 8>(8) && counted_so<8, 8>(8));
static_assert(counted_so<64, 32>(8));
template <int group>
constexpr double percent_of_64 = 100. * static_cast<double>(block_slot_products<64, group>(8).seen) /
                                 static_cast<double>(block_slot_products<64, group>(8).computed);
static_assert(percent_of_64<2> == 3.125 && percent_of_64<4> == 6.25 && percent_of_64<8> == 12.5);  // printed 3.12, ...
static_assert(percent_of_64<16> == 25 && percent_of_64<32> == 50);

// ---- perplexities (Table 5): truncated, not rounded; the ten values average 15.616 and 13.678 -----------------------

static_assert(1832 + 1743 + 2437 + 953 + 1226 + 1678 + 2053 + 917 + 2384 + 393 == 15'616);  // printed 15.61
static_assert(1616 + 1537 + 2110 + 845 + 1041 + 1419 + 1813 + 819 + 2121 + 357 == 13'678);  // printed 13.67

}  // namespace
