// SPDX-License-Identifier: MIT
// Forward and backward of an expert layer as backend operations. Rank 5.
#pragma once

#include "sdepth/layers/experts.hpp"
#include "sdepth/ops/experts.hpp"
#include "sdepth/passes/ffn.hpp"
#include "sdepth/passes/shared_experts.hpp"

namespace sdepth::inline v0 {

template <long long E, long long K, moe_policy P>
struct ffn_pass<Experts<E, K, P>> {
    static constexpr long long experts = E;
    static constexpr moe_policy policy = P;
    using shared_pass = shared_experts_pass<Experts<E, K, P>>;
    static constexpr int ways = static_cast<int>(policy.choice == expert_choice::by_expert ? E : K);
    /// Rows that all experts together execute at most, of n.
    static constexpr long long slots(long long n) {
        if (policy.choice != expert_choice::by_expert) return n * K;
        const long long each = expert_capacity(factor, K, n, E);
        return E * (each < n ? each : n);
    }

    template <class B>
    struct saved {
        using activation = typename B::precision::activation;
        using sum = typename B::precision::sum;
        // The choice, kept under every replay policy: it is made once.
        sum* logits = nullptr;      // [rows, E]
        sum* spread = nullptr;      // [rows, E], noisy routers only
        sum* noisy = nullptr;       // [rows, E], the same
        sum* weights = nullptr;     // [rows, W]
        int* chosen = nullptr;      // [rows, W]
        int* slot = nullptr;        // [rows, W]
        int* assignment = nullptr;  // [S]
        int* offsets = nullptr;     // [E + 1]
        int* wanted = nullptr;      // [B, E]
        // Hidden rows.
        activation* gate = nullptr;  // [S, de]
        activation* up = nullptr;    // [S, de]
        typename shared_pass::template saved<B> shared;

        constexpr void carve(carver& keep, carver& hidden, const Dims& d, const extents& e) {
            const long long rows = e.own_rows();
            keep(logits, rows * E);
            if (policy.noisy) {
                keep(spread, rows * E);
                keep(noisy, rows * E);
            }
            keep(weights, rows * ways);
            keep(chosen, rows * ways);
            keep(slot, rows * ways);
            keep(assignment, slots(rows));
            keep(offsets, E + 1);
            keep(wanted, e.batch * E);
            hidden(gate, slots(rows) * d.expert_ffn);
            hidden(up, slots(rows) * d.expert_ffn);
            shared.carve(hidden, d, e);
        }
    };
    template <class B>
    struct scratch {
        using activation = typename B::precision::activation;
        using sum = typename B::precision::sum;
        activation* x = nullptr;          // [S, d], inputs of the experts; in the backward last their gradient
        activation* y = nullptr;          // [S, d], outputs, or their gradient
        activation* act = nullptr;        // [S, de]
        activation* grad_gate = nullptr;  // [S, de]
        activation* grad_up = nullptr;    // [S, de], first the gradient of act
        sum* grad_weights = nullptr;      // [rows, W]
        sum* grad_logits = nullptr;       // [rows, E], of the logits that choose
        sum* grad_clean = nullptr;        // [rows, E], noisy routers only: before the noise
        sum* grad_spread = nullptr;       // [rows, E], the same
        typename shared_pass::template scratch<B> shared;

        constexpr void carve(carver& take, const Dims& d, const extents& e) {
            const long long rows = e.own_rows();
            take(x, slots(rows) * d.width);
            take(y, slots(rows) * d.width);
            take(act, slots(rows) * d.expert_ffn);
            take(grad_gate, slots(rows) * d.expert_ffn);
            take(grad_up, slots(rows) * d.expert_ffn);
            take(grad_weights, rows * ways);
            take(grad_logits, rows * E);
            if (policy.noisy) {
                take(grad_clean, rows * E);
                take(grad_spread, rows * E);
            }
            shared.carve(take, d, e);
        }
    };

    /// Hidden rows of the saved choice again: what a selective replay repeats.
    template <class B, class View>
    static void hidden(B& backend, const Dims& d, const View& w, const batch_rows& rows,
                       const typename B::precision::activation* x, const saved<B>& s, const scratch<B>& t) {
        backend.gather_slots(gathered<B>(d, rows, s, x, t.x));
        backend.grouped_linear(in_product(d, w, s, t.x, View::at("mlp.experts.{e}.gate_proj.weight"), s.gate));
        backend.grouped_linear(in_product(d, w, s, t.x, View::at("mlp.experts.{e}.up_proj.weight"), s.up));
        shared_pass::hidden(backend, d, w, rows, x, s.shared);
    }
    template <class B, class View>
    static void forward(B& backend, const Dims& d, const View& w, const batch_rows& rows,
                        const typename B::precision::activation* x, const saved<B>& s, const scratch<B>& t,
                        typename B::precision::activation* f, const ffn_step& step) {
        if (!step.replay) choose(backend, d, w, rows, x, s, step);
        hidden(backend, d, w, rows, x, s, t);
        backend.weighted_swiglu(middle<B>(d, rows, s, t.act));
        backend.grouped_linear(out_product(d, w, s, t.act, t.y));
        shared_pass::forward(backend, d, w, rows, s.shared, t.shared, f);
        backend.combine_slots(combined<B>(d, rows, s, policy.shared > 0, t.y, f));
    }
    /// @param grad_x  [rows, d], overwritten
    template <class B, class View>
    static void backward(B& backend, const Dims& d, const View& w, const batch_rows& rows,
                         const typename B::precision::activation* x, const saved<B>& s, const scratch<B>& t,
                         const typename B::precision::activation* grad_f, typename B::precision::activation* grad_x,
                         const ffn_step& step) {
        backend.weighted_swiglu(middle<B>(d, rows, s, t.act));  // again, instead of keeping it
        backend.gather_slots(gathered<B>(d, rows, s, grad_f, t.y));
        backend.grouped_linear_backward({.forward = out_product(d, w, s, t.act, static_cast<decltype(t.y)>(nullptr)),
                                         .grad_y = t.y,
                                         .grad_x = t.grad_up,
                                         .grad_weight = w.gradient(View::at("mlp.experts.{e}.down_proj.weight"))});
        clear(backend, t.grad_weights, rows.capacity() * ways);
        backend.weighted_swiglu_backward({.forward = middle<B>(d, rows, s, nullptr),
                                          .grad_act = t.grad_up,
                                          .grad_gate = t.grad_gate,
                                          .grad_up = t.grad_up,
                                          .grad_weights = t.grad_weights});
        backend.gather_slots(gathered<B>(d, rows, s, x, t.x));
        const auto back = [&](tensor_place weight, const auto* grad_y, bool adds) {
            backend.grouped_linear_backward(
                {.forward = in_product(d, w, s, t.x, weight, static_cast<decltype(t.y)>(nullptr)),
                 .grad_y = grad_y,
                 .grad_x = t.y,
                 .adds_to_grad_x = adds,
                 .grad_weight = w.gradient(weight)});
        };
        back(View::at("mlp.experts.{e}.gate_proj.weight"), t.grad_gate, false);
        back(View::at("mlp.experts.{e}.up_proj.weight"), t.grad_up, true);
        backend.combine_slots(combined<B>(d, rows, s, false, t.y, grad_x));
        shared_pass::backward(backend, d, w, rows, x, s.shared, t.shared, grad_f, grad_x);
        router_backward(backend, d, w, rows, x, s, t, grad_x, step);
    }

  private:
    static constexpr double factor = policy.capacity > 0 ? policy.capacity : 1;  // of experts that choose
    static constexpr int width(const Dims& d) { return static_cast<int>(d.width); }

    // ---- the router ----

    template <class B>
    static const typename B::precision::sum* deciding(const saved<B>& s, const ffn_step& step) {
        return policy.noisy && step.training ? s.noisy : s.logits;
    }
    template <class B, class View>
    static void choose(B& backend, const Dims& d, const View& w, const batch_rows& rows,
                       const typename B::precision::activation* x, const saved<B>& s, const ffn_step& step) {
        backend.expert_logits(logits(d, w, rows, View::at("mlp.router.weight"), x, s.logits));
        if (policy.noisy && step.training) {
            backend.expert_logits(logits(d, w, rows, View::at("mlp.router_noise.weight"), x, s.spread));
            backend.expert_noise(noise(rows, s, step));
        }
        const bool limited = step.training && policy.choice == expert_choice::by_token;
        backend.choose_experts({.rows = rows,
                                .experts = E,
                                .each = K,
                                .ways = ways,
                                .choice = policy.choice,
                                .score = policy.score,
                                .capacity = factor,
                                .logits = deciding(s, step),
                                .bias = w.master(View::at("mlp.router.bias")),
                                .chosen = s.chosen,
                                .wanted = s.wanted});
        backend.group_experts({.rows = rows,
                               .experts = E,
                               .each = K,
                               .ways = ways,
                               .capacity = limited ? policy.capacity : 0,
                               .excess = policy.excess,
                               .logits = deciding(s, step),
                               .wanted = s.wanted,
                               .chosen = s.chosen,
                               .offsets = s.offsets,
                               .assignment = s.assignment,
                               .slot = s.slot,
                               .load = step.load,
                               .counts = step.counts});
        backend.expert_weights(weighting(rows, s, step));
        if (step.sums != nullptr) backend.expert_losses(losses(rows, s, step));
    }
    template <class B, class View>
    static void router_backward(B& backend, const Dims& d, const View& w, const batch_rows& rows,
                                const typename B::precision::activation* x, const saved<B>& s, const scratch<B>& t,
                                typename B::precision::activation* grad_x, const ffn_step& step) {
        auto loss = losses(rows, s, step);
        loss.sums = nullptr;
        loss.balance_scale = policy.loss_weight * step.balance_scale;
        loss.z_scale = policy.z_loss_weight * step.z_scale;
        loss.grad_logits = t.grad_logits;
        loss.grad_clean = t.grad_clean;
        loss.grad_spread = t.grad_spread;
        loss.grad_weights = t.grad_weights;
        backend.expert_losses(loss);
        backend.expert_weights_backward(
            {.forward = weighting(rows, s, step), .grad_weights = t.grad_weights, .grad_logits = t.grad_logits});
        auto* grad_logits = t.grad_logits;
        if constexpr (policy.noisy) {
            backend.expert_noise_backward({.forward = noise(rows, s, step),
                                           .grad_noisy = t.grad_logits,
                                           .grad_logits = t.grad_clean,
                                           .grad_spread = t.grad_spread});
            grad_logits = t.grad_clean;
            logits_backward(backend, d, w, rows, View::at("mlp.router_noise.weight"), x, t.grad_spread, grad_x);
        }
        logits_backward(backend, d, w, rows, View::at("mlp.router.weight"), x, grad_logits, grad_x);
    }
    template <class View, class A, class S>
    static auto logits(const Dims& d, const View& w, const batch_rows& rows, tensor_place weight, const A* x, S* out) {
        return ExpertLogitsArgs<typename View::precision>{
            .rows = rows, .width = width(d), .experts = E, .x = x, .weight = w.master(weight), .logits = out};
    }
    template <class B, class View, class A, class S>
    static void logits_backward(B& backend, const Dims& d, const View& w, const batch_rows& rows, tensor_place weight,
                                const A* x, const S* grad, A* grad_x) {
        backend.expert_logits_backward({.forward = logits(d, w, rows, weight, x, static_cast<S*>(nullptr)),
                                        .grad_logits = grad,
                                        .grad_x = grad_x,
                                        .grad_weight = w.gradient(weight)});
    }
    template <class B>
    static ExpertNoiseArgs<typename B::precision> noise(const batch_rows& rows, const saved<B>& s,
                                                        const ffn_step& step) {
        return {.rows = rows,
                .experts = E,
                .seed = step.seed,
                .layer = step.layer,
                .first = step.first,
                .sequence = step.sequence,
                .ids = step.ids,
                .logits = s.logits,
                .spread = s.spread,
                .noisy = s.noisy};
    }
    template <class B>
    static ExpertWeightsArgs<typename B::precision> weighting(const batch_rows& rows, const saved<B>& s,
                                                              const ffn_step& step) {
        return {.rows = rows,
                .experts = E,
                .ways = ways,
                .score = policy.score,
                .order = policy.order,
                .renormalise = policy.renormalise,
                .scale = policy.weight_scale,
                .logits = deciding(s, step),
                .chosen = s.chosen,
                .weights = s.weights};
    }
    template <class B>
    static ExpertLossArgs<typename B::precision> losses(const batch_rows& rows, const saved<B>& s,
                                                        const ffn_step& step) {
        const bool noisy = policy.noisy && step.training;
        return {.rows = rows,
                .experts = E,
                .each = K,
                .ways = ways,
                .score = policy.score,
                .loss = policy.loss,
                .logits = deciding(s, step),
                .clean = noisy ? s.logits : nullptr,
                .spread = noisy ? s.spread : nullptr,
                .weights = s.weights,
                .chosen = s.chosen,
                .wanted = s.wanted,
                .by = step.rows,
                .sums = step.sums};
    }

    // ---- the experts ----

    template <class B>
    static batch_rows slot_rows(const batch_rows& rows, const saved<B>& s) {
        return {1, {static_cast<int>(slots(rows.capacity())), s.offsets + E}};
    }
    template <class B>
    static GatherSlotsArgs<typename B::precision> gathered(const Dims& d, const batch_rows& rows, const saved<B>& s,
                                                           const typename B::precision::activation* x,
                                                           typename B::precision::activation* out) {
        return {.slots = slot_rows(rows, s),
                .width = width(d),
                .ways = ways,
                .assignment = s.assignment,
                .x = x,
                .out = out};
    }
    template <class B>
    static CombineSlotsArgs<typename B::precision> combined(const Dims& d, const batch_rows& rows, const saved<B>& s,
                                                            bool adds, const typename B::precision::activation* y,
                                                            typename B::precision::activation* sum) {
        return {.rows = rows, .width = width(d), .ways = ways, .adds = adds, .slot = s.slot, .y = y, .sum = sum};
    }
    template <class B>
    static WeightedSwigluArgs<typename B::precision> middle(const Dims& d, const batch_rows& rows, const saved<B>& s,
                                                            typename B::precision::activation* act) {
        return {.slots = slot_rows(rows, s),
                .hidden = static_cast<int>(d.expert_ffn),
                .assignment = s.assignment,
                .weights = s.weights,
                .gate = s.gate,
                .up = s.up,
                .act = act};
    }
    template <class View, class S, class A>
    static auto grouped(const View& w, const S& s, tensor_place weight, long long inputs, long long outputs, const A* x,
                        A* y) {
        return GroupedLinearArgs<typename View::precision>{.experts = E,
                                                           .inputs = static_cast<int>(inputs),
                                                           .outputs = static_cast<int>(outputs),
                                                           .offsets = s.offsets,
                                                           .x = x,
                                                           .weight = w.weight(weight),
                                                           .y = y};
    }
    template <class View, class S, class A>
    static auto in_product(const Dims& d, const View& w, const S& s, const A* x, tensor_place weight, A* y) {
        return grouped(w, s, weight, d.width, d.expert_ffn, x, y);
    }
    template <class View, class S, class A>
    static auto out_product(const Dims& d, const View& w, const S& s, const A* x, A* y) {
        return grouped(w, s, View::at("mlp.experts.{e}.down_proj.weight"), d.expert_ffn, d.width, x, y);
    }
};

}  // namespace sdepth::inline v0
