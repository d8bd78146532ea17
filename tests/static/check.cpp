// SPDX-License-Identifier: MIT
// Bounds of every size and range of every number that a user gives: one step beyond is the rule that names it, at the
// layer that has it, whatever the product with the other sizes would be.
#include "sdepth/check.hpp"

#include <limits>

#include "sdepth/sdepth.hpp"

namespace {

using namespace sdepth;
using namespace sdepth::literals;

constexpr Dims small{
    .width = 64, .head_dim = 16, .heads = 4, .kv_heads = 2, .ffn = 128, .expert_ffn = 32, .vocab = 256};
constexpr Dims with(long long Dims::*size, long long value) {
    Dims d = small;
    d.*size = value;
    return d;
}

constexpr bool breaks(verdict v, rule r, long long layer, long long a = 0, long long b = 0) {
    return v.broken == r && v.layer == layer && v.a == a && v.b == b;
}
constexpr long long huge = 1LL << 62;
template <class L>
using second = Stack<Dense, L>;

// ---- sizes of Dims --------------------------------------------------------------------------------------------------

// With every layer kind that takes the size: the largest value passes, a larger one is named at its layer.
template <auto formula>
constexpr bool bounded(long long Dims::*size, size_name name, long long layer) {
    using P = std::remove_cvref_t<decltype(formula)>;
    for (const long long value : {largest_size(name) + 1, 4'000'000'000LL, 1LL << 62, count::largest}) {
        if (!breaks(check<P>(with(size, value)), rule::size_too_large, layer, static_cast<long long>(name), value)) {
            return false;
        }
    }
    for (const long long value : {0LL, -1LL, -count::largest - 1}) {
        if (size == &Dims::kv_heads && value == 0) continue;  // as many as query heads
        if (!breaks(check<P>(with(size, value)), rule::size_not_positive, layer, static_cast<long long>(name), value)) {
            return false;
        }
    }
    return check<P>(with(size, largest_size(name))).ok();
}
constexpr auto after_mamba = mamba * 2_c + dense;
static_assert(bounded<after_mamba>(&Dims::width, size_name::width, 0));
static_assert(bounded<after_mamba>(&Dims::vocab, size_name::vocab, 0));
static_assert(bounded<after_mamba>(&Dims::head_dim, size_name::head_dim, 3));
static_assert(bounded<after_mamba>(&Dims::heads, size_name::heads, 3));
static_assert(bounded<after_mamba>(&Dims::ffn, size_name::ffn, 3));
static_assert(bounded<mamba + moe<4, 2>>(&Dims::expert_ffn, size_name::expert_ffn, 2));
static_assert(breaks(check<Dense>(with(&Dims::kv_heads, -1)), rule::size_not_positive, 1,
                     static_cast<long long>(size_name::kv_heads), -1));
static_assert(breaks(check<Dense>(with(&Dims::kv_heads, 1LL << 62)), rule::size_too_large, 1,
                     static_cast<long long>(size_name::kv_heads), 1LL << 62));

constexpr Dims largest_attention = [] {
    Dims d = with(&Dims::width, 1 << 20);
    d.heads = d.kv_heads = d.head_dim = 1 << 20;
    return d;
}();
static_assert(check<Dense>(largest_attention).ok(), "6 x 2^60 parameters");
static_assert(breaks(check<Repeat<Dense, 2>>(largest_attention), rule::counts_fit, 1, count::largest));

// A size that no layer of ours reads is bounded too, for a layer of a user's may multiply it; it is about no layer.
static_assert(breaks(check<std::remove_const_t<decltype(mamba)>>(with(&Dims::heads, 1LL << 62)), rule::size_too_large,
                     0, static_cast<long long>(size_name::heads), 1LL << 62));

// Counts of layers that overflow only together.
static_assert(breaks(check<Stack<Repeat<Sparse<2>, huge>, Repeat<Sparse<3>, huge>, Dense>>(small), rule::counts_fit, 0,
                     count::largest));

// ---- sizes of policies ----------------------------------------------------------------------------------------------

template <class L>
constexpr bool too_large(size_name name, long long value) {
    return breaks(check<second<L>>(small), rule::size_too_large, 2, static_cast<long long>(name), value);
}
template <class L>
constexpr bool not_positive(size_name name, long long value) {
    return breaks(check<second<L>>(small), rule::size_not_positive, 2, static_cast<long long>(name), value);
}
template <class Mixer>
using mixes = Block<Mixer, None>;

static_assert(too_large<mixes<S4<s4_policy{.state = huge}>>>(size_name::state, huge));
static_assert(too_large<mixes<Mamba<mamba_policy{.state = huge}>>>(size_name::state, huge));
static_assert(too_large<mixes<Mamba<mamba_policy{.conv = huge}>>>(size_name::conv, huge));
static_assert(too_large<mixes<Mamba<mamba_policy{.expand = 1LL << 60}>>>(size_name::expand, 1LL << 60));
static_assert(too_large<mixes<Mamba<mamba_policy{.step_rank = huge}>>>(size_name::step_rank, huge));
static_assert(not_positive<mixes<Mamba<mamba_policy{.step_rank = -1}>>>(size_name::step_rank, -1));
static_assert(too_large<mixes<Mamba2<mamba2_policy{.state = huge}>>>(size_name::state, huge));
static_assert(too_large<mixes<Mamba2<mamba2_policy{.conv = huge}>>>(size_name::conv, huge));
static_assert(too_large<mixes<Mamba2<mamba2_policy{.expand = huge}>>>(size_name::expand, huge));
static_assert(too_large<mixes<Mamba2<mamba2_policy{.head_dim = huge}>>>(size_name::head_dim, huge));
static_assert(too_large<mixes<Mamba2<mamba2_policy{.groups = huge}>>>(size_name::groups, huge));
static_assert(not_positive<mixes<Mamba2<mamba2_policy{.groups = 0}>>>(size_name::groups, 0));
static_assert(not_positive<mixes<Mamba2<mamba2_policy{.head_dim = -1}>>>(size_name::head_dim, -1));
static_assert(too_large<mixes<LinearAttention<linear_attention_policy{.heads = huge}>>>(size_name::heads, huge));
static_assert(too_large<mixes<LinearAttention<linear_attention_policy{.key_dim = huge}>>>(size_name::key_dim, huge));
static_assert(too_large<mixes<LinearAttention<linear_attention_policy{.value_dim = huge}>>>(size_name::value_dim,
                                                                                            huge));
static_assert(not_positive<mixes<LinearAttention<linear_attention_policy{.key_dim = -2}>>>(size_name::key_dim, -2));
static_assert(too_large<mixes<GatedDelta<gated_delta_policy{.heads = huge}>>>(size_name::heads, huge));
static_assert(too_large<mixes<GatedDelta<gated_delta_policy{.value_heads = huge}>>>(size_name::value_heads, huge));
static_assert(too_large<mixes<GatedDelta<gated_delta_policy{.key_dim = huge}>>>(size_name::key_dim, huge));
static_assert(too_large<mixes<GatedDelta<gated_delta_policy{.value_dim = huge}>>>(size_name::value_dim, huge));
static_assert(too_large<mixes<GatedDelta<gated_delta_policy{.conv = huge}>>>(size_name::conv, huge));
static_assert(not_positive<mixes<GatedDelta<gated_delta_policy{.value_heads = -4}>>>(size_name::value_heads, -4));
static_assert(not_positive<mixes<GatedDelta<gated_delta_policy{.value_dim = -4}>>>(size_name::value_dim, -4));
static_assert(too_large<mixes<Attention<attention_policy{.window = huge}>>>(size_name::window, huge));
static_assert(too_large<mixes<DepthAttention<moda_policy{.ffn = false, .slots = huge}>>>(size_name::slots, huge));
static_assert(too_large<Block<None, Experts<huge, 2>>>(size_name::experts, huge));
static_assert(too_large<Block<None, Experts<4, 2, moe_policy{.shared = huge}>>>(size_name::shared_experts, huge));
static_assert(too_large<Block<None, Experts<4, 2, moe_policy{.shared_ffn = huge}>>>(size_name::shared_ffn, huge));
static_assert(not_positive<Block<None, Experts<4, 2, moe_policy{.shared_ffn = -1}>>>(size_name::shared_ffn, -1));
static_assert(too_large<Sparse<huge>>(size_name::sparsity, huge));
static_assert(too_large<Sparse<2, mixes<S4<s4_policy{.state = huge}>>>>(size_name::state, huge), "of an inner layer");

// Sizes that no layer reads are left out or positive.
constexpr bool unread_not_negative(long long Dims::*size, size_name name) {
    return check<decltype(mamba * 2_c)>(with(size, 0)).ok() &&
           breaks(check<decltype(mamba * 2_c)>(with(size, -1)), rule::size_not_positive, 0,
                  static_cast<long long>(name), -1);
}
static_assert(unread_not_negative(&Dims::head_dim, size_name::head_dim) &&
              unread_not_negative(&Dims::heads, size_name::heads) &&
              unread_not_negative(&Dims::kv_heads, size_name::kv_heads) &&
              unread_not_negative(&Dims::ffn, size_name::ffn) &&
              unread_not_negative(&Dims::expert_ffn, size_name::expert_ffn));

// Slots of one position: as many as an int numbers.
static_assert(check<decltype(moda * 536'870'912_c)>(with(&Dims::width, 1)).ok());
static_assert(breaks(check<decltype(dense + moda * 536'870'913_c)>(small), rule::size_too_large, 2,
                     static_cast<long long>(size_name::slots), (1LL << 30) + 2));

// The largest recurrent states still multiply.
static_assert(check<mixes<GatedDelta<gated_delta_policy{.heads = 1 << 20, .key_dim = 1 << 20, .value_dim = 1 << 19}>>>(
                  with(&Dims::width, 1))
                  .ok());

// ---- numbers of policies --------------------------------------------------------------------------------------------

template <class L>
constexpr bool out_of_range(policy_name name, long long millionths) {
    return breaks(check<second<L>>(small), rule::policy_within_range, 2, static_cast<long long>(name), millionths);
}
template <class L>
constexpr bool fine = check<Stack<L, Dense>>(small).ok();
constexpr double infinite = std::numeric_limits<double>::infinity();
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

template <attention_policy P>
using attends = mixes<Attention<P>>;
static_assert(out_of_range<attends<attention_policy{.rotary_base = 0}>>(policy_name::rotary_base, 0));
static_assert(out_of_range<attends<attention_policy{.rotary_base = -1e4}>>(policy_name::rotary_base, -10'000'000'000));
static_assert(fine<attends<attention_policy{.rotary = false, .rotary_base = 0}>>, "nobody reads it");
static_assert(out_of_range<attends<attention_policy{.norm_epsilon = -0.5}>>(policy_name::norm_epsilon, -500'000));
static_assert(fine<attends<attention_policy{.norm = qk_norm::none, .norm_epsilon = 0}>>);
static_assert(out_of_range<Block<Attention<>, SwiGLU<>, block_policy{.norm_epsilon = 0}>>(policy_name::norm_epsilon,
                                                                                          0));
static_assert(out_of_range<mixes<LinearAttention<linear_attention_policy{.epsilon = -1}>>>(policy_name::epsilon,
                                                                                           -1'000'000));

template <sparse_policy P>
using skips = Sparse<4, Dense, P>;
static_assert(out_of_range<skips<sparse_policy{.tau = -1}>>(policy_name::tau, -1'000'000));
static_assert(out_of_range<skips<sparse_policy{.tau = not_a_number}>>(policy_name::tau, -1));
static_assert(fine<skips<sparse_policy{.scale_start = -1, .tau = 0, .increment = 0}>>);
static_assert(out_of_range<skips<sparse_policy{.increment = -0.25}>>(policy_name::increment, -250'000));
static_assert(out_of_range<skips<sparse_policy{.clear_every = -3}>>(policy_name::clear_every, -3'000'000));
static_assert(out_of_range<skips<sparse_policy{.scale_start = infinite}>>(policy_name::scale_start,
                                                                          9'000'000'000'000'000'000));
static_assert(out_of_range<skips<sparse_policy{.loss_weight = -1e-2}>>(policy_name::loss_weight, -10'000));
static_assert(out_of_range<skips<sparse_policy{.cut_rate = -0.5}>>(policy_name::cut_rate, -500'000));
static_assert(out_of_range<skips<sparse_policy{.cut_rate = 1.5}>>(policy_name::cut_rate, 1'500'000));
static_assert(fine<skips<sparse_policy{.loss_weight = 0, .cut_rate = 0}>> && fine<skips<sparse_policy{.cut_rate = 1}>>);
static_assert(out_of_range<skips<sparse_policy{.router_rate = -0.1}>>(policy_name::router_rate, -100'000));
static_assert(out_of_range<skips<sparse_policy{.router_rate = 2}>>(policy_name::router_rate, 2'000'000));
static_assert(fine<skips<sparse_policy{.router_rate = 0}>>);

static_assert(out_of_range<skips<sparse_policy{.clear_every = (1LL << 30) + 1}>>(policy_name::clear_every,
                                                                                 1'073'741'825'000'000));
static_assert(fine<skips<sparse_policy{.clear_every = 1LL << 30}>>);

template <moe_policy P>
using routes = Block<Attention<>, Experts<4, 2, P>>;
static_assert(out_of_range<routes<moe_policy{.weight_scale = 0}>>(policy_name::weight_scale, 0));
static_assert(out_of_range<routes<moe_policy{.shared = -2}>>(policy_name::shared, -2'000'000));
static_assert(out_of_range<routes<moe_policy{.steering_step = -1}>>(policy_name::steering_step, -1'000'000));
static_assert(out_of_range<routes<moe_policy{.loss_weight = -1}>>(policy_name::loss_weight, -1'000'000));
static_assert(out_of_range<routes<moe_policy{.z_loss_weight = -1}>>(policy_name::z_loss_weight, -1'000'000));
static_assert(out_of_range<routes<moe_policy{.capacity = -1}>>(policy_name::capacity, -1'000'000));
static_assert(out_of_range<routes<moe_policy{.capacity = 1e12}>>(policy_name::capacity, 1'000'000'000'000'000'000));
static_assert(out_of_range<routes<moe_policy{.capacity = not_a_number}>>(policy_name::capacity, -1));

// Every choice, one beyond its last enumerator; before the first one.
static_assert(out_of_range<attends<attention_policy{.norm = static_cast<qk_norm>(3)}>>(policy_name::norm, 3'000'000));
static_assert(out_of_range<Block<Attention<>, SwiGLU<>, block_policy{.norm = static_cast<norm_place>(2)}>>(
    policy_name::norm, 2'000'000));
static_assert(out_of_range<Block<Attention<>, MLP<static_cast<activation>(3)>>>(policy_name::activation, 3'000'000));
static_assert(out_of_range<mixes<LinearAttention<linear_attention_policy{.map = static_cast<feature_map>(3)}>>>(
    policy_name::map, 3'000'000));
static_assert(out_of_range<routes<moe_policy{.score = static_cast<expert_score>(-1)}>>(policy_name::score, -1'000'000));
static_assert(out_of_range<routes<moe_policy{.score = static_cast<expert_score>(2)}>>(policy_name::score, 2'000'000));
static_assert(out_of_range<routes<moe_policy{.order = static_cast<score_order>(2)}>>(policy_name::order, 2'000'000));
static_assert(out_of_range<routes<moe_policy{.choice = static_cast<expert_choice>(3)}>>(policy_name::choice,
                                                                                        3'000'000));
static_assert(out_of_range<routes<moe_policy{.loss = static_cast<balance>(5)}>>(policy_name::loss, 5'000'000));
static_assert(out_of_range<routes<moe_policy{.excess = static_cast<overflow>(3)}>>(policy_name::excess, 3'000'000));
static_assert(out_of_range<skips<sparse_policy{.gate = static_cast<gate_form>(3)}>>(policy_name::gate, 3'000'000));
static_assert(out_of_range<skips<sparse_policy{.cut = static_cast<threshold>(2)}>>(policy_name::cut, 2'000'000));
static_assert(out_of_range<skips<sparse_policy{.gate_logit = static_cast<routing_logit>(2)}>>(policy_name::gate_logit,
                                                                                              2'000'000));
static_assert(out_of_range<skips<sparse_policy{.loss_logit = static_cast<routing_logit>(2)}>>(policy_name::loss_logit,
                                                                                              2'000'000));
static_assert(out_of_range<skips<sparse_policy{.scope = static_cast<selection_scope>(2)}>>(policy_name::scope,
                                                                                           2'000'000));
static_assert(out_of_range<skips<sparse_policy{.keys = static_cast<key_scope>(2)}>>(policy_name::keys, 2'000'000));
template <moda_policy P>
using writes = Block<DepthAttention<P>, SwiGLU<>>;
static_assert(out_of_range<writes<moda_policy{.attention = static_cast<attention_slot>(3)}>>(policy_name::attention,
                                                                                             3'000'000));
static_assert(out_of_range<writes<moda_policy{.choice = static_cast<slot_choice>(3)}>>(policy_name::choice, 3'000'000));
static_assert(fine<routes<moe_policy{.choice = expert_choice::balanced, .loss = balance::importance_load}>> &&
              fine<skips<sparse_policy{.gate = gate_form::none, .keys = key_scope::full}>> &&
              fine<Block<Attention<>, MLP<activation::silu>>>);
static_assert(fine<routes<moe_policy{.steering_step = 0, .loss_weight = 0, .capacity = 0}>>);

// ---- runs -----------------------------------------------------------------------------------------------------------

constexpr Run run_with(long long Run::*size, long long value) {
    Run r{.seq = 64, .batch = 2};
    r.*size = value;
    return r;
}
constexpr bool ranged(long long Run::*size, run_size name, long long least) {
    for (const long long value : {least - 1, -5LL, -count::largest - 1, largest_run_size + 1, count::largest}) {
        const verdict v = check_run(run_with(size, value));
        if (!breaks(v, rule::run_within_range, 0, static_cast<long long>(name), value)) return false;
    }
    return check_run(run_with(size, least)).ok();
}
static_assert(ranged(&Run::seq, run_size::seq, 1) && ranged(&Run::batch, run_size::batch, 1));
static_assert(ranged(&Run::accumulate, run_size::accumulate, 1) && ranged(&Run::ranks, run_size::ranks, 1));
static_assert(ranged(&Run::max_documents, run_size::max_documents, 1));
static_assert(ranged(&Run::document, run_size::document, 0) && ranged(&Run::context, run_size::context, 0));
static_assert(breaks(check_run({.seq = 64, .document = 65}), rule::document_within_sequence, 0, 65, 64));
static_assert(breaks(check_run({.seq = 64, .replay = static_cast<recompute>(3)}), rule::run_within_range, 0,
                     static_cast<long long>(run_size::replay), 3));
static_assert(check_run({.seq = 64, .replay = recompute::full}).ok());
static_assert(breaks(check_run({.seq = 64, .moments = static_cast<optimiser>(2)}), rule::run_within_range, 0,
                     static_cast<long long>(run_size::moments), 2));
static_assert(check_run({.seq = 64, .moments = optimiser::muon}).ok());
static_assert(check_run({.seq = 64, .document = 64}).ok() && check_run({.seq = 64, .context = 1 << 30}).ok());
static_assert(check_run({.seq = 1 << 15, .batch = 1 << 15, .accumulate = 1 << 20, .ranks = 1 << 12}).ok());
static_assert(breaks(check_run({.seq = 1 << 15, .batch = (1 << 15) + 1}), rule::run_tokens_fit, 0,
                     (1 << 30) + (1 << 15), (1 << 30) + (1 << 15)));
static_assert(breaks(check_run({.seq = 1 << 15, .batch = 1 << 15, .accumulate = 1 << 21, .ranks = 1 << 12}),
                     rule::run_tokens_fit, 0, 1 << 30, count::largest));

// ---- tensors of a layer ---------------------------------------------------------------------------------------------

constexpr tensor_rows rows_of(int size) {
    tensor_rows rows;
    for (int i = 0; i < size; ++i) rows.add(matrix("weight", role::output, 1, 1));
    return rows;
}
constexpr tensor_rows joined(int a, int b) {
    tensor_rows rows = rows_of(a);
    rows.add(rows_of(b));
    return rows;
}
static_assert(rows_of(32).size == 32 && rows_of(32).kept() == 32 && rows_of(40).size == 40 && rows_of(40).kept() == 32);
static_assert(joined(20, 12).size == 32 && joined(20, 40).size == 60 && joined(40, 20).size == 60);

// Each has a name of its own in a file.
constexpr verdict named(std::string_view first, std::string_view second, long long copies) {
    tensor_rows rows;
    rows.add(matrix(first, role::output, 1, 1));
    rows.add(matrix(second, role::output, 1, 1));
    rows.items[1].copies = copies;
    return detail::check_names(rows);
}
static_assert(named("a", "b", 1).ok() && named("a", "a.{e}", 2).ok());
static_assert(breaks(named("a", "a", 1), rule::tensor_names_differ, 0, 2, 1));
static_assert(breaks(named("a", "", 1), rule::tensor_names_differ, 0, 2, 0));
static_assert(breaks(named("a", "b", 2), rule::tensor_names_differ, 0, 2, 2));

// A rule that there is none of is a layer's own.
struct OwnRule : Dense {
    static constexpr verdict check(const Dims&) { return {static_cast<rule>(999), 0, 3, 4}; }
};
static_assert(breaks(check<second<OwnRule>>(small), rule::layer_own, 2, 999));
// So is one that is about no layer, or that layers are not asked for.
static_assert(breaks(detail::own_verdict({rule::run_tokens_fit, 0, 3, 4}), rule::layer_own, 0,
                     static_cast<long long>(rule::run_tokens_fit)));
static_assert(detail::own_verdict({rule::tensor_rows_fit}).broken == rule::layer_own);
static_assert(breaks(detail::own_verdict({rule::parts_fit, 0, 1}), rule::parts_fit, 0, 1));
static_assert(breaks(detail::own_verdict({rule::channels_divide_heads, 0, 5, 2}), rule::channels_divide_heads, 0, 5,
                     2));

// Each choice of a tensor's row is one of its enumerators.
constexpr verdict chosen(tensor_row row) {
    tensor_rows rows;
    rows.add(row);
    return detail::check_numbers(rows, {}, {});
}
constexpr bool not_chosen(tensor_row row, layer_number number, long long value) {
    return breaks(chosen(row), rule::layer_within_range, 0, static_cast<long long>(number), value);
}
static_assert(chosen({.name = "row",
                      .use = role::bias,
                      .start = {.kind = init_kind::log_step},
                      .scope = row_scope::none,
                      .group = update_group::adamw,
                      .split = sharding::by_expert})
                  .ok());
static_assert(not_chosen({.name = "row", .use = static_cast<role>(role_count)}, layer_number::tensor_role, role_count));
static_assert(not_chosen({.name = "row", .scope = static_cast<row_scope>(-1)}, layer_number::tensor_scope, -1));
static_assert(not_chosen({.name = "row", .group = static_cast<update_group>(2)}, layer_number::tensor_group, 2));
static_assert(not_chosen({.name = "row", .split = static_cast<sharding>(2)}, layer_number::tensor_split, 2));
static_assert(not_chosen({.name = "row", .start = {.kind = static_cast<init_kind>(9)}}, layer_number::tensor_start, 9));
// The logical matrices of a tensor are its rows.
static_assert(chosen(stacked("row", role::input, {3, 4, 5}, 2)).ok());
static_assert(not_chosen({.name = "row", .rows = 12, .parts = {3, 4}}, layer_number::tensor_parts, 7));
static_assert(not_chosen({.name = "row", .rows = 7, .parts = {3, 4, 5}}, layer_number::tensor_parts, 12));
static_assert(not_chosen({.name = "row", .rows = 7, .parts = {3, 8, -4}}, layer_number::tensor_parts, -4));
static_assert(not_chosen({.name = "row", .rows = 7, .parts = {count::largest, 8}}, layer_number::tensor_parts,
                         count::largest));

// A name, and a part that a matrix belongs to.
struct Nameless : Dense {
    static constexpr std::string_view name = "";
};
struct Neither : Dense {
    static constexpr bool has_mixer = false;
    static constexpr bool has_ffn = false;
};
struct Scaled : Neither {  // without a matrix, it needs neither
    static constexpr tensor_rows tensors(const Dims& d) {
        tensor_rows rows;
        rows.add(vector("scale", role::scale, d.width, {}));
        return rows;
    }
};
static_assert(breaks(check<second<Nameless>>(small), rule::layer_members_agree, 2,
                     static_cast<long long>(detail::layer_member::name)));
static_assert(breaks(check<second<Neither>>(small), rule::layer_members_agree, 2,
                     static_cast<long long>(detail::layer_member::has_mixer)));
static_assert(check<second<Scaled>>(small).ok());

// A width that a layer states counts under sparse depth too.
struct Narrow : Dense {
    static constexpr long long width(const Dims& d) { return d.width / 2; }
};
static_assert(breaks(check<second<Narrow>>(small), rule::widths_agree, 2, 32, 64));
static_assert(breaks(check<Stack<Dense, Sparse<4, Narrow>, Dense>>(small), rule::widths_agree, 2, 32, 64));

// ---- what a member is -----------------------------------------------------------------------------------------------

template <class L>
constexpr bool lacks(detail::layer_member member) {
    return breaks(check<second<L>>(small), rule::lacks_member, 2, static_cast<long long>(member));
}
using detail::layer_member;
struct MixerFunction : Dense {
    static constexpr bool has_mixer() { return false; }
};
struct FfnNumber : Dense {
    static constexpr int has_ffn = 1;
};
struct CausalFunction : Dense {
    static constexpr bool causal() { return true; }
};
struct WaitsFunction : Dense {
    static constexpr bool waits_for_anchor() { return false; }
};
struct MutableSizes : Dense {
    static constexpr tensor_rows tensors(Dims& d) { return Dense::tensors(d); }
};
struct WidthNumber : Dense {
    static constexpr long long width = 32;
};
struct WidthInt : Dense {
    static constexpr int width(const Dims&) { return 64; }
};
static_assert(lacks<MixerFunction>(layer_member::has_mixer) && lacks<FfnNumber>(layer_member::has_ffn));
static_assert(lacks<CausalFunction>(layer_member::causal) && lacks<WaitsFunction>(layer_member::waits_for_anchor));
static_assert(lacks<MutableSizes>(layer_member::tensors));
static_assert(lacks<WidthNumber>(layer_member::width) && lacks<WidthInt>(layer_member::width));
static_assert(lacks<Sparse<4, MixerFunction>>(layer_member::has_mixer), "of an inner layer");

// Members that only sparse depth gives a meaning.
struct Pruned : Dense {
    static constexpr double sparsity = 0.5;
};
static_assert(check<Stack<Sparse<4>, Pruned>>(small).ok() && Pruned::sparsity < 1, "an anchor");
static_assert(active_layers<Model<Stack<Sparse<4>, Pruned>{}, small>> == ratio(5, 4) && !detail::skips_rows<Pruned>);

// A feed-forward part in the place of the mixer, whatever is in the other.
template <class L>
constexpr bool misplaced(part_fault fault) {
    return breaks(check<second<L>>(small), rule::parts_fit, 2, static_cast<long long>(fault));
}
static_assert(misplaced<Block<SwiGLU<>, Attention<>>>(part_fault::mixer_is_an_ffn));
static_assert(misplaced<Block<SwiGLU<>, SwiGLU<>>>(part_fault::mixer_is_an_ffn));
static_assert(misplaced<Block<MLP<>, None>>(part_fault::mixer_is_an_ffn));
static_assert(misplaced<Block<Mamba2<>, Attention<>>>(part_fault::ffn_is_a_mixer));
struct NoState : SwiGLU<> {
    static constexpr mixing_work mixing(const Dims&) { return {}; }
};
static_assert(lacks<Block<NoState, SwiGLU<>>>(layer_member::state), "a mixer that is not finished");

}  // namespace
