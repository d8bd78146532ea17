// SPDX-License-Identifier: MIT
// Plans: the formulas of the X-MoD paper as exact types, every tested A and K, refused plans as data, and tokens.
#include "sdepth/planner.hpp"

#include <type_traits>

#include "sdepth/counted.hpp"
#include "sdepth/params.hpp"
#include "sdepth/presets.hpp"
#include "sdepth/token_budget.hpp"

namespace {

using namespace sdepth;
using namespace sdepth::literals;

template <class P, class Q>
constexpr bool same(P, Q) {
    return std::is_same_v<P, Q>;
}

// Eq. 35 and 36, the same types as written out; and with the printed policy, the presets.
constexpr x_mod_plan a4k8{.active = 28, .prefix = 4, .stride = 4, .sparsity = 8};
constexpr x_mod_plan a3k16{.active = 28, .prefix = 4, .stride = 3, .sparsity = 16};
static_assert(same(planned<a4k8>, dense * 4_c + (sparse<8> * 24_c + dense) + (sparse<8> * 32_c + dense) * 4_c));
static_assert(same(planned<a3k16>, dense * 4_c + (sparse<16> * 48_c + dense) * 6_c));
static_assert(same(planned<a4k8, Dense, printed_policy>, presets::a4k8));
static_assert(same(planned<a3k16, Dense, printed_policy>, presets::a3k16));
static_assert(same(planned<x_mod_plan{.active = 52, .prefix = 4, .stride = 1, .sparsity = 12}, Dense, printed_policy>,
                   presets::deep_a1k12));

// A fraction; another layer; no prefix; nothing but a prefix; only a shorter block; an anchor without sparse layers.
static_assert(same(planned<x_mod_plan{.active = 28, .prefix = 4, .stride = {1, 2}, .sparsity = 4}>,
                   dense * 4_c + (sparse<4> * 2_c + dense) * 16_c));
static_assert(same(planned<x_mod_plan{.active = 28, .prefix = 4, .stride = {2, 4}, .sparsity = 4}>,
                   planned<x_mod_plan{.active = 28, .prefix = 4, .stride = {1, 2}, .sparsity = 4}>));
using Mixer = std::remove_const_t<decltype(mamba)>;
static_assert(same(planned<x_mod_plan{.active = 4, .prefix = 2, .stride = 1, .sparsity = 3}, Mixer>,
                   mamba * 2_c + sparse<3>(mamba) * 3_c + mamba));
static_assert(same(planned<x_mod_plan{.active = 14, .stride = 1, .sparsity = 16}>, (sparse<16> * 16_c + dense) * 7_c));
static_assert(same(planned<x_mod_plan{.active = 3, .prefix = 3, .stride = 1, .sparsity = 8}>, dense * 3_c));
static_assert(same(planned<x_mod_plan{.active = 6, .prefix = 3, .stride = 4, .sparsity = 8}>,
                   dense * 3_c + sparse<8> * 16_c + dense));
static_assert(same(planned<x_mod_plan{.active = 10, .prefix = 4, .stride = 4, .sparsity = 8}>,
                   dense * 5_c + sparse<8> * 32_c + dense));

// All that the paper tried: 28 active layers exactly, whatever A and K, and a model that counts them so.
constexpr anchor_stride strides[] = {{1, 2}, 1, 2, 3, 4, 5};
constexpr long long sparsities[] = {4, 8, 12, 16};
constexpr bool all_are_28() {
    for (const anchor_stride stride : strides) {
        for (const long long sparsity : sparsities) {
            const x_mod_plan plan{.active = 28, .prefix = 4, .stride = stride, .sparsity = sparsity};
            if (!check_plan(plan).ok() || !(blocks_of(plan).active() == ratio(28))) return false;
        }
    }
    return true;
}
static_assert(all_are_28());
static_assert(blocks_of(a4k8).layers() == 161 && blocks_of(a4k8).blocks == 4 && blocks_of(a4k8).first == 24);
static_assert(blocks_of(a3k16).layers() == 298 && !blocks_of(a3k16).shorter);
using A4K8 = Model<planned<a4k8>, presets::size_556m>;
static_assert(counted<A4K8::layers, blocks_of(a4k8).layers()>());
static_assert(counted<params<A4K8>.paper, 2'635'237'376>());

// Every budget is met exactly for whole strides; for a fraction, less than a layer may be left over.
constexpr bool whole_strides_are_exact() {
    for (long long active = 1; active <= 60; ++active) {
        for (long long stride = 1; stride <= 7; ++stride) {
            if (!(blocks_of({active, active / 7, stride, 6}).active() == ratio(active))) return false;
        }
    }
    return true;
}
static_assert(whole_strides_are_exact());
constexpr x_mod_plan left_over{.active = 6, .prefix = 4, .stride = {1, 2}, .sparsity = 2};
static_assert(blocks_of(left_over).active() == ratio(11, 2) && blocks_of(left_over).layers() == 6);

// The rules of a plan, as data.
constexpr bool refused(const x_mod_plan& plan, rule broken, long long a, long long b = 0) {
    const verdict v = check_plan(plan);
    return v.broken == broken && v.a == a && v.b == b;
}
static_assert(refused({28, 4, {1, 2}, 5}, rule::stride_gives_whole_layers, 5, 2));
static_assert(refused({28, 4, {2, 3}, 8}, rule::stride_gives_whole_layers, 16, 3));
static_assert(refused({28, 4, 0, 8}, rule::stride_gives_whole_layers, 0, 1));
static_assert(refused({28, 4, {1, 0}, 8}, rule::stride_gives_whole_layers, 1, 0));
static_assert(refused({28, 4, 1, 0}, rule::sparsity_at_least_one, 0));
static_assert(refused({4, 5, 1, 8}, rule::prefix_within_budget, 5, 4));
static_assert(refused({4, -1, 1, 8}, rule::prefix_within_budget, -1, 4));
static_assert(refused({0, 0, 1, 8}, rule::prefix_within_budget, 0, 0));
static_assert(refused({28, 4, count::largest / 2, 8}, rule::counts_fit, count::largest));
static_assert(refused({count::largest / 4, 4, 1, 8}, rule::counts_fit, count::largest));
static_assert(check_plan({28, 4, {1, 2}, 6}).ok() && check_plan({4, 4, 1, 1}).ok());

// The law at a plan; and a K that the law chose, made a model.
static_assert(law_point_of(a4k8, 556e6, 32768).capacity == 161.0 / 28);
static_assert(law_point_of(a3k16, 556e6, 32768).stride == 3);
constexpr long long candidates[] = {4, 8, 12, 16, 20, 24};
constexpr double one[] = {1};
constexpr law_optimum best = best_of({556e6, 32768, candidates, one});
using Best =
    Model<planned<x_mod_plan{.active = 28, .prefix = 4, .stride = 1, .sparsity = best.sparsity}>, presets::size_556m>;
static_assert(Best::layers == 4 + 12 * 21);

// Tokens of a step.
static_assert(counted<batch_tokens(Run{.seq = 32768, .batch = 80}), 2'621'440>());
static_assert(counted<batch_tokens(Run{.seq = 32768, .batch = 1, .accumulate = 10, .ranks = 8}), 2'621'440>());
static_assert(sequences_for(32768) == 80 && sequences_for(2048) == 1280 && sequences_for(65536) == 40);
static_assert(sequences_for(48000) == 55 && sequences_for(10'000'000) == 1);

// Tokens of the dense rows of Table 6 in both readings, 11.9, 16.6, 24.2 and 3.97, 5.53, 8.06 billion.
constexpr Run paper_run{.seq = 32768, .batch = 80};
template <Dims D>
constexpr token_budget dense_tokens(double compute) {
    return tokens_for<Model<dense * 28_c, D>, paper_run>(compute);
}
constexpr token_budget t556 = dense_tokens<presets::size_556m>(1e20);
constexpr token_budget t936 = dense_tokens<presets::size_936m>(1.5e20);
constexpr token_budget t1650 = dense_tokens<presets::size_1650m>(2.5e20);
constexpr long long millions(long long tokens) { return tokens / 1'000'000; }
static_assert(counted<millions(t556.forward), 11909>() && counted<millions(t556.training), 3969>());
static_assert(counted<millions(t936.forward), 16601>() && counted<millions(t936.training), 5533>());
static_assert(counted<millions(t1650.forward), 24190>() && counted<millions(t1650.training), 8063>());
static_assert(t556.batch_tokens == 2'621'440 && t556.steps() == t556.training / 2'621'440);

}  // namespace
