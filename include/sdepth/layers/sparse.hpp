// SPDX-License-Identifier: MIT
// Sparse depth: a layer that executes 1/K of the rows and leaves the others untouched. Rank 2.
#pragma once

#include <concepts>
#include <string_view>

#include "sdepth/choices.hpp"
#include "sdepth/layer.hpp"
#include "sdepth/layers/block.hpp"

namespace sdepth::inline v0 {

/// Where evaluation cuts the logits.
enum class threshold {
    tracked,  ///< at the running mean of the training cut
    half      ///< at probability 1/2, as printed
};
/// Which logit a gate or a loss reads: s - tau b - c, or the router's own s.
enum class routing_logit { biased, raw };
/// Among which rows 1/K are chosen.
enum class selection_scope { sequence, document };
/// Which rows give keys and values to the chosen queries.
enum class key_scope {
    selected,
    full  ///< of every row: Selected-Q/full-KV, a control of the X-MoD paper
};

constexpr std::string_view name_of(threshold cut) { return cut == threshold::tracked ? "tracked" : "half"; }
constexpr std::string_view name_of(routing_logit logit) { return logit == routing_logit::biased ? "biased" : "raw"; }
constexpr std::string_view name_of(selection_scope scope) {
    return scope == selection_scope::sequence ? "sequence" : "document";
}
constexpr std::string_view name_of(key_scope scope) { return scope == key_scope::selected ? "selected" : "full"; }

struct sparse_policy {
    gate_form gate = gate_form::layer;
    bool scale = true;          ///< learned residual scale, one number a layer
    double scale_start = 1;     ///< the paper prints none
    bool bias = true;           ///< token-choice bias (Eq. 8)
    double tau = 1;             ///< weight of the bias; the paper prints none
    double increment = 1;       ///< what one choice adds to the bias; the paper prints none
    long long clear_every = 0;  ///< clear the bias every so many sparse layers; 0 = at anchors only
    threshold cut = threshold::tracked;
    routing_logit gate_logit = routing_logit::biased;  ///< Eq. 8
    routing_logit loss_logit = routing_logit::biased;  ///< Eq. 9 prints `raw`
    selection_scope scope = selection_scope::sequence;
    key_scope keys = key_scope::selected;
    bool detach = false;        ///< stop the routing loss at the router
    double loss_weight = 1e-2;  ///< of the routing loss (Eq. 9), mean over sparse layers and rows
    double cut_rate = 0.02;     ///< share of a step's cut that enters the tracked one
    double router_rate = 1;     ///< share of the learning rate that the router's weight takes

    friend constexpr bool operator==(const sparse_policy&, const sparse_policy&) = default;
};

/// Mixture-of-Depths: the feed-forward part gated, no scale (Eq. 6).
inline constexpr sparse_policy mod_policy{.gate = gate_form::ffn, .scale = false};
/// X-MoD as its paper prints it: threshold 1/2, Eq. 9 on the raw logit, loss weight 1e-4.
inline constexpr sparse_policy printed_policy{
    .cut = threshold::half, .loss_logit = routing_logit::raw, .loss_weight = 1e-4};
/// Mixture-of-Depths as the X-MoD paper prints it.
inline constexpr sparse_policy printed_mod_policy{.gate = gate_form::ffn,
                                                  .scale = false,
                                                  .cut = threshold::half,
                                                  .loss_logit = routing_logit::raw,
                                                  .loss_weight = 1e-4};

/// Layer L executed by the ceil(L/K) rows with the largest routing logits.
template <long long K, class L = Dense, sparse_policy P = sparse_policy{}>
struct Sparse : detail::sparse_base {
    using inner = L;
    static constexpr sparse_policy policy = P;
    static constexpr long long sparsity = K;
    static constexpr std::string_view name = "sparse";
    static constexpr bool has_mixer = detail::says_mixer<L>;
    static constexpr bool has_ffn = detail::says_ffn<L>;
    static constexpr bool causal = detail::says_causal<L>;  // evaluation routes by threshold, token by token
    static constexpr bool waits_for_anchor = policy.bias && policy.clear_every == 0;
    static constexpr bool chooses_by_document = policy.scope == selection_scope::document;

    static constexpr long long inner_sparsity = [] {
        if constexpr (detail::skips_rows<L>) {
            return L::sparsity;
        } else {
            return 0LL;
        }
    }();

    static constexpr tensor_rows tensors(const Dims& d) {
        tensor_rows rows;
        rows.add(vector("router.weight", role::router, d.width, {init_kind::normal, 0.02}));
        rows.begin()->scope = row_scope::all;
        rows.begin()->rate = policy.router_rate;
        if (policy.scale) rows.add(vector("router.scale", role::scale, 1, {init_kind::constant, policy.scale_start}));
        if (policy.cut == threshold::tracked) {
            tensor_row cut = vector("router.cut", role::cut, 1, {init_kind::zeros, 0});
            cut.trained = false;
            rows.add(cut);
        }
        tensor_rows own = L::tensors(d);
        for (tensor_row& row : own) {
            const bool key = row.use == role::key || row.use == role::value;
            if (policy.keys == key_scope::full && key) {
                row.scope = row_scope::all;
            } else if (K >= 1) {
                row.active = row.active * ratio(1, K);
            }
        }
        rows.add(own);
        return rows;
    }
    static constexpr mixing_work mixing(const Dims& d) {
        mixing_work work = L::mixing(d);
        work.full_keys = policy.keys == key_scope::full;
        return work;
    }
    static constexpr state_size state(const Dims& d) { return L::state(d); }
    static constexpr verdict check(const Dims& d) {
        using detail::require;
        const verdict inner_layer = L::check(d);
        const verdict own = detail::first_broken(
            require(K >= 1, rule::sparsity_at_least_one, K), detail::require_bound(K, size_name::sparsity),
            require(inner_sparsity == 0, rule::sparse_in_sparse, K, inner_sparsity), check_policy(), inner_layer);
        if (!own.ok()) return own;  // the state below is of good sizes only
        return require(policy.keys == key_scope::selected || L::state(d).kv_row > 0, rule::full_kv_needs_attention, K);
    }

    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        sink.function("sparsity K", K);
        sink.function("router logit", "s = w . x");
        sink.function("token-choice bias", policy.bias);
        if (policy.bias) {
            sink.function("tau", policy.tau);
            sink.function("bias increment", policy.increment);
            sink.function("bias cleared every n sparse layers, 0 = at anchors", policy.clear_every);
        }
        sink.function("chosen in training", "the ceil(L/K) largest s - tau b, ties to the lower position, order kept");
        sink.function("choice among", name_of(policy.scope));
        sink.function("cut c in evaluation", name_of(policy.cut));
        sink.function("chosen in evaluation", "s - tau b - c >= 0");
        sink.function("gated part", name_of(policy.gate));
        if (policy.gate != gate_form::none) sink.function("gate logit", name_of(policy.gate_logit));
        sink.function("learned scale", policy.scale);
        sink.function("keys and values from", name_of(policy.keys));
        sink.record("scale start", policy.scale_start);
        sink.record("routing loss", "weight x mean over sparse layers and real tokens of BCE(sigmoid(logit), chosen)");
        sink.record("routing loss weight", policy.loss_weight);
        sink.record("routing loss logit", name_of(policy.loss_logit));
        sink.record("routing loss gradient", policy.detach ? "router only" : "router and its input");
        sink.record("cut rule", "c += rate (m - c) once a step, m = mean midpoint of last chosen and first unchosen");
        sink.record("cut rate", policy.cut_rate);
        sink.record("router rate", policy.router_rate);
        sink.function("inner layer", L::name);
        L::describe(sink, d);
    }

    /// `sparse<8>(mamba)`: the same routing around another layer.
    template <class Other>
    constexpr auto operator()(Other) const {
        if constexpr (std::derived_from<Other, layer_base>) {
            return Sparse<K, Other, detail::evaluated(policy)>{};
        } else {
            return detail::wrong_inner_layer<Other>();
        }
    }
    template <class... Others>
    requires(sizeof...(Others) != 1) constexpr broken_formula operator()(Others...) const {
        return detail::wrong_inner_layer<Others...>();
    }

  private:
    // A negative tau or increment would draw tokens to where they have been: the reverse of balancing (Eq. 8).
    static constexpr verdict check_policy() {
        using detail::require_not_negative;
        return detail::first_broken(
            require_not_negative(policy_name::tau, policy.tau),
            require_not_negative(policy_name::increment, policy.increment),
            detail::require_up_to(1 << 30, policy_name::clear_every, static_cast<double>(policy.clear_every)),
            detail::require_between(-detail::largest_policy, detail::largest_policy, policy_name::scale_start,
                                    policy.scale_start),
            require_not_negative(policy_name::loss_weight, policy.loss_weight),
            detail::require_up_to(1, policy_name::cut_rate, policy.cut_rate),
            detail::require_up_to(1, policy_name::router_rate, policy.router_rate), check_choices());
    }
    static constexpr verdict check_choices() {
        using detail::require_choice;
        return detail::first_broken(require_choice(policy_name::gate, policy.gate, gate_form::none),
                                    require_choice(policy_name::cut, policy.cut, threshold::half),
                                    require_choice(policy_name::gate_logit, policy.gate_logit, routing_logit::raw),
                                    require_choice(policy_name::loss_logit, policy.loss_logit, routing_logit::raw),
                                    require_choice(policy_name::scope, policy.scope, selection_scope::document),
                                    require_choice(policy_name::keys, policy.keys, key_scope::full));
    }
};

/// Sparse depth over a dense block; `sparse<K>(l)` is the same over any layer l.
template <long long K, sparse_policy P = sparse_policy{}>
inline constexpr Sparse<K, Dense, detail::evaluated(P)> sparse{};

/// Mixture-of-Depths layer (Eq. 6).
template <long long K>
inline constexpr Sparse<K, Dense, mod_policy> mod{};

}  // namespace sdepth::inline v0
