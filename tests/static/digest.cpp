// SPDX-License-Identifier: MIT
// The digest: every field of every policy and of Dims is described, it changes the digest exactly if it changes the
// function, and spellings of one model agree.
#include "sdepth/digest.hpp"

#include <array>
#include <utility>

#include "sdepth/sdepth.hpp"
#include "support/fields.hpp"

namespace {

using namespace sdepth;
using namespace sdepth::literals;
using namespace sdepth_test;

constexpr Dims small{.width = 64, .head_dim = 16, .heads = 4, .ffn = 128, .expert_ffn = 32, .vocab = 256};

// Reads the run record only.
struct record_sink {
    detail::digest_sink fields{};
    template <class Value>
    constexpr void function(std::string_view, const Value&) {}
    template <class Value>
    constexpr void record(std::string_view name, const Value& value) {
        fields.function(name, value);
    }
    constexpr std::uint64_t value() const { return fields.hash.value(); }
};

struct described {
    std::uint64_t function = 0;
    std::uint64_t record = 0;
    std::uint64_t digest = 0;
};
template <class L>
constexpr described describe() {
    detail::digest_sink function;
    record_sink record;
    L::describe(function, small);
    L::describe(record, small);
    return {function.hash.value(), record.value(), detail::kind_digest<L>(small)};
}

template <class L>
inline constexpr described description = describe<L>();  // once, however often it is read

template <class Family, auto base, auto member, int step>
constexpr described describe_changed() {
    constexpr auto policy = changed<base, member, step>();
    return description<typename Family::template kind<policy>>;
}

// One field and its values: all differ in the part that it belongs to, and those of a record field in no other.
template <class Family, auto base, auto member, bool is_function>
constexpr bool field_is_described() {
    return []<int... steps>(std::integer_sequence<int, steps...>) {
        constexpr std::array values{description<typename Family::template kind<base>>,
                                    describe_changed<Family, base, member, steps + 1>()...};
        for (std::size_t i = 0; i < values.size(); ++i) {
            for (std::size_t j = 0; j < i; ++j) {
                if ((values[i].function != values[j].function) != is_function) return false;
                if ((values[i].digest != values[j].digest) != is_function) return false;
                if (!is_function && values[i].record == values[j].record) return false;
            }
        }
        return values.size() > 1;
    }
    (std::make_integer_sequence<int, variant_count<base, member>()>{});
}

template <class Family, auto base, auto member, bool is_function>
constexpr bool check_field() {
    static_assert(field_is_described<Family, base, member, is_function>(), "the field is described wrongly, or not");
    return true;
}

template <class Family, auto base, auto... of_function, auto... of_record>
constexpr bool check_fields(fields<of_function...>, fields<of_record...>) {
    static_assert(field_count<std::remove_cvref_t<decltype(base)>>() == fields<of_function..., of_record...>::size,
                  "a field of the policy is missing here");
    return (check_field<Family, base, of_function, true>() && ... && true) &&
           (check_field<Family, base, of_record, false>() && ... && true);
}

struct blocks {
    template <block_policy P>
    using kind = Block<Attention<>, SwiGLU<>, P>;
};
static_assert(check_fields<blocks, block_policy{}>(fields<&block_policy::norm, &block_policy::norm_epsilon>{},
                                                   fields<>{}));

struct attentions {
    template <attention_policy P>
    using kind = Block<Attention<P>, None>;
};
static_assert(check_fields<attentions, attention_policy{}>(
    fields<&attention_policy::norm, &attention_policy::rotary, &attention_policy::rotary_base,
           &attention_policy::window, &attention_policy::biases, &attention_policy::norm_epsilon>{},
    fields<>{}));

struct swiglus {
    template <ffn_policy P>
    using kind = Block<None, SwiGLU<P>>;
};
struct mlps {
    template <ffn_policy P>
    using kind = Block<None, MLP<activation::relu, P>>;
};
static_assert(check_fields<swiglus, ffn_policy{}>(fields<&ffn_policy::biases>{}, fields<>{}));
static_assert(check_fields<mlps, ffn_policy{}>(fields<&ffn_policy::biases>{}, fields<>{}));

struct experts_family {
    template <moe_policy P>
    using kind = Block<None, Experts<16, 2, P>>;
};
using experts_function = fields<&moe_policy::score, &moe_policy::order, &moe_policy::renormalise,
                                &moe_policy::weight_scale, &moe_policy::shared, &moe_policy::shared_ffn,
                                &moe_policy::choice, &moe_policy::steering, &moe_policy::noisy>;
constexpr moe_policy softmax_steered = [] {
    moe_policy p = steered_policy;
    p.score = expert_score::softmax;
    return p;
}();
using experts_record = fields<&moe_policy::steering_step, &moe_policy::loss, &moe_policy::loss_weight,
                              &moe_policy::z_loss_weight, &moe_policy::capacity, &moe_policy::excess>;
static_assert(check_fields<experts_family, moe_policy{.shared = 1}>(experts_function{}, experts_record{}));
static_assert(check_fields<experts_family, softmax_steered>(experts_function{}, experts_record{}));
// An expert that chooses its rows chooses as many as it has capacity for.
static_assert(
    check_field<experts_family, moe_policy{.choice = expert_choice::by_expert}, &moe_policy::capacity, true>());
static_assert(describe<Block<None, Experts<16, 2>>>().digest != describe<Block<None, Experts<16, 3>>>().digest);
static_assert(describe<Block<None, Experts<16, 2>>>().digest != describe<Block<None, Experts<17, 2>>>().digest);

struct sparse_family {
    template <sparse_policy P>
    using kind = Sparse<8, Dense, P>;
};
using sparse_function = fields<&sparse_policy::gate, &sparse_policy::scale, &sparse_policy::bias, &sparse_policy::tau,
                               &sparse_policy::increment, &sparse_policy::clear_every, &sparse_policy::cut,
                               &sparse_policy::gate_logit, &sparse_policy::scope, &sparse_policy::keys>;
using sparse_record = fields<&sparse_policy::scale_start, &sparse_policy::loss_logit, &sparse_policy::detach,
                             &sparse_policy::loss_weight, &sparse_policy::cut_rate, &sparse_policy::router_rate>;
static_assert(check_fields<sparse_family, sparse_policy{}>(sparse_function{}, sparse_record{}));
static_assert(check_fields<sparse_family, printed_mod_policy>(sparse_function{}, sparse_record{}));
static_assert(describe<Sparse<8>>().digest != describe<Sparse<9>>().digest);
static_assert(describe<Sparse<8>>().digest != describe<Sparse<8, Block<Mamba<>, None>>>().digest);

struct moda_family {
    template <moda_policy P>
    using kind = Block<DepthAttention<P>, SwiGLU<>>;
};
static_assert(check_fields<moda_family, moda_policy{.slots = 4}>(
    fields<&moda_policy::reads, &moda_policy::attention, &moda_policy::ffn, &moda_policy::slots, &moda_policy::choice,
           &moda_policy::joint>{},
    fields<>{}));
struct moda_attentions {
    template <attention_policy P>
    using kind = Block<DepthAttention<moda_policy{}, P>, SwiGLU<>>;
};
static_assert(check_field<moda_attentions, attention_policy{}, &attention_policy::window, true>());

struct s4_family {
    template <s4_policy P>
    using kind = Block<S4<P>, None>;
};
static_assert(check_fields<s4_family, s4_policy{}>(fields<&s4_policy::state>{}, fields<>{}));

struct mamba_family {
    template <mamba_policy P>
    using kind = Block<Mamba<P>, None>;
};
static_assert(check_fields<mamba_family, mamba_policy{}>(
    fields<&mamba_policy::state, &mamba_policy::conv, &mamba_policy::expand, &mamba_policy::step_rank>{}, fields<>{}));

struct mamba2_family {
    template <mamba2_policy P>
    using kind = Block<Mamba2<P>, None>;
};
static_assert(check_fields<mamba2_family, mamba2_policy{.head_dim = 32}>(
    fields<&mamba2_policy::state, &mamba2_policy::conv, &mamba2_policy::expand, &mamba2_policy::head_dim,
           &mamba2_policy::groups>{},
    fields<>{}));

struct linear_family {
    template <linear_attention_policy P>
    using kind = Block<LinearAttention<P>, None>;
};
static_assert(check_fields<linear_family, linear_attention_policy{}>(
    fields<&linear_attention_policy::heads, &linear_attention_policy::key_dim, &linear_attention_policy::value_dim,
           &linear_attention_policy::map, &linear_attention_policy::gated, &linear_attention_policy::epsilon>{},
    fields<>{}));

struct delta_family {
    template <gated_delta_policy P>
    using kind = Block<GatedDelta<P>, None>;
};
static_assert(check_fields<delta_family, gated_delta_policy{}>(
    fields<&gated_delta_policy::heads, &gated_delta_policy::value_heads, &gated_delta_policy::key_dim,
           &gated_delta_policy::value_dim, &gated_delta_policy::conv, &gated_delta_policy::output_gate>{},
    fields<>{}));

static_assert(describe<Block<None, MLP<activation::gelu>>>().digest !=
              describe<Block<None, MLP<activation::relu>>>().digest);
static_assert(describe<Block<None, MLP<activation::relu>>>().digest !=
              describe<Block<None, MLP<activation::silu>>>().digest);

// ---- whole models ---------------------------------------------------------------------------------------------------

template <auto formula, Dims d = small>
constexpr std::uint64_t of = digest<Model<formula, d>>;

// Every size counts where a layer uses it, and nowhere else: the others make no other model.
template <auto formula, Dims base, auto... Members>
constexpr bool uses(fields<Members...>) {
    return ((of<formula, base> != of<formula, changed<base, Members, 2>()>)&&...);
}
template <auto formula, Dims base, auto... Members>
constexpr bool ignores(fields<Members...>) {
    return ((of<formula, base> == of<formula, changed<base, Members, 2>()>)&&...);
}
using every_size = fields<&Dims::width, &Dims::head_dim, &Dims::heads, &Dims::kv_heads, &Dims::ffn, &Dims::expert_ffn,
                          &Dims::vocab, &Dims::tied>;
static_assert(field_count<Dims>() == every_size::size, "a size is missing here");
static_assert(uses<dense + moe<8, 2> + sparse<4> * 4_c + dense, small>(every_size{}));
static_assert(uses<mamba, small>(fields<&Dims::width, &Dims::vocab, &Dims::tied>{}));
static_assert(
    ignores<mamba, small>(fields<&Dims::head_dim, &Dims::heads, &Dims::kv_heads, &Dims::ffn, &Dims::expert_ffn>{}));
static_assert(ignores<dense + mamba2, small>(fields<&Dims::expert_ffn>{}));
static_assert(uses<moe<8, 2>, small>(fields<&Dims::head_dim, &Dims::heads, &Dims::kv_heads, &Dims::expert_ffn>{}));
static_assert(ignores<moe<8, 2>, small>(fields<&Dims::ffn>{}));
static_assert(uses<ffn_only, small>(fields<&Dims::ffn>{}));
static_assert(ignores<ffn_only, small>(fields<&Dims::head_dim, &Dims::heads, &Dims::kv_heads, &Dims::expert_ffn>{}));
static_assert(uses<linear_attention, small>(fields<&Dims::head_dim, &Dims::heads>{}));
static_assert(ignores<linear_attention, small>(fields<&Dims::kv_heads, &Dims::expert_ffn>{}));

// So do policies that another one turns off.
template <attention_policy A, attention_policy B>
constexpr bool same_attention = describe<Block<Attention<A>, None>>().digest
                                == describe<Block<Attention<B>, None>>().digest;
template <sparse_policy A, sparse_policy B>
constexpr bool same_routing = describe<Sparse<8, Dense, A>>().digest == describe<Sparse<8, Dense, B>>().digest;
template <moe_policy A, moe_policy B>
constexpr bool same_experts = describe<Block<None, Experts<16, 2, A>>>().digest
                              == describe<Block<None, Experts<16, 2, B>>>().digest;
template <moda_policy A, moda_policy B>
constexpr bool same_depth = describe<Block<DepthAttention<A>, None>>().digest
                            == describe<Block<DepthAttention<B>, None>>().digest;
static_assert(same_attention<attention_policy{.rotary = false}, attention_policy{.rotary = false, .rotary_base = 1}>);
static_assert(same_attention<attention_policy{.norm = qk_norm::none},
                             attention_policy{.norm = qk_norm::none, .norm_epsilon = 1}>);
static_assert(same_routing<sparse_policy{.bias = false},
                           sparse_policy{.bias = false, .tau = 2, .increment = 2, .clear_every = 2}>);
static_assert(same_routing<sparse_policy{.gate = gate_form::none},
                           sparse_policy{.gate = gate_form::none, .gate_logit = routing_logit::raw}>);
static_assert(same_experts<moe_policy{}, moe_policy{.shared_ffn = 8}>);
static_assert(same_experts<moe_policy{.score = expert_score::sigmoid},
                           moe_policy{.score = expert_score::sigmoid, .order = score_order::score_then_choose}>);
static_assert(same_depth<moda_policy{}, moda_policy{.choice = slot_choice::first}>);
static_assert(same_depth<moda_policy{.reads = false}, moda_policy{.reads = false, .slots = 2, .joint = false}>);

// A size that takes its default equals the same size written out.
constexpr Dims written_out = [] {
    Dims d = small;
    d.kv_heads = d.heads;
    return d;
}();
static_assert(of<dense, small> == of<dense, written_out>);
static_assert(describe<Block<Mamba<>, None>>().digest ==
              describe<Block<Mamba<mamba_policy{.step_rank = 4}>, None>>().digest);

// However one sequence of layers is spelled, it is one model.
static_assert(of<(dense + mamba) * 2_c> == of<dense + mamba + dense + mamba>);
static_assert(of<(dense * 2_c + mamba) * 2_c + dense> == of<dense * 2_c + mamba + dense * 2_c + mamba + dense>);
static_assert(of<loop<4>(dense)> == of<loop<2>(loop<2>(dense))>);
static_assert(of<loop<1>(dense + mamba)> == of<dense + mamba>);
static_assert(of<dense * 2_c> == of<layer<Attention<>, SwiGLU<>> + dense>);

// Order, depth and shared weights are part of it.
static_assert(of<dense + mamba> != of<mamba + dense>);
static_assert(of<dense * 2_c> != of<dense * 3_c>);
static_assert(of<dense * 2_c> != of<loop<2>(dense)>);
static_assert(of<loop<2>(dense) * 2_c> != of<loop<4>(dense)>);
static_assert(of<loop<2>(dense + mamba)> != of<(dense + mamba) * 2_c>);

// What the run record holds is not.
constexpr auto other_weight = sparse<4, sparse_policy{.loss_weight = 1, .cut_rate = 0.5}>;
static_assert(of<dense + sparse<4> * 4_c + dense> == of<dense + other_weight * 4_c + dense>);
static_assert(of<dense + sparse<4> * 4_c + dense> == of<dense + sparse<4> + other_weight * 3_c + dense>);

// 412 layers fit the step limit of every compiler. The value is pinned, and the same on all of them: a reworded field
// is a new digest, which refuses the files of before.
constexpr auto deep = dense * 4_c + (sparse<16> * 16_c + dense) * 24_c;
static_assert(of<deep> == 0xae5ed6fff275e06d,
              "a described field changed: files of before are refused; pin the new value");

}  // namespace
