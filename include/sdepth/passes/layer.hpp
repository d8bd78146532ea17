// SPDX-License-Identifier: MIT
// Forward and backward of a whole layer on the residual stream: choose rows, run the block, add its gated branches.
// A dense layer is the case that chooses every row and gates none. Rank 5.
#pragma once

#include "sdepth/ops/route.hpp"
#include "sdepth/passes/layer_kind.hpp"

namespace sdepth::inline v0 {

/// What the layers of one micro-batch share.
template <class B>
struct stream {
    using activation = typename B::precision::activation;
    using sum = typename B::precision::sum;

    batch_rows rows;                 ///< [B, L], live = real tokens of each sequence
    const int* every_row = nullptr;  ///< [B, L]: 0, 1, ... in each sequence
    const int* documents = nullptr;  ///< [B, L] document of each row; null: one a sequence
    activation* x = nullptr;         ///< [B, L, d], the residual stream
    activation* grad_x = nullptr;    ///< [B, L, d]
    sum* bias = nullptr;             ///< [B, L], token-choice bias
    const int* start = nullptr;      ///< decoding: [B], rows of each sequence before these; else null
    int* positions = nullptr;        ///< decoding: room for [B, L]
    int* key_positions = nullptr;    ///< decoding: room for [B, L]
    layer_slots<B> slots{};          ///< depth slots; `sequence`, `ids` and `every_key` are set by the worker
};

/// Sums that sparse layers leave behind, one row a layer: what the tracked cut and the log read.
struct route_sums {
    double* loss = nullptr;           ///< sum of the routing loss over rows
    double* cut = nullptr;            ///< sum of cut midpoints
    long long* cut_groups = nullptr;  ///< number of them
};

/// What the passes of a run of sparse layers share where its routers' logits and gradients go by version of a row, see
/// RouteVersionLogitsArgs and RouteVersionBackwardArgs.
template <class B>
struct run_routing {
    long long logits_stride = 0;  ///< forward: numbers from a layer's logits to the next one's; 0: each for itself
    typename B::precision::sum* grad_logits = nullptr;  ///< [layers, B, L]; null: each layer for itself
    int* later = nullptr;                               ///< [B, L]
    typename B::precision::sum* sums = nullptr;         ///< [Backend::route_parts, layers, d]
    int layers = 0;
    int layer = 0;         ///< which of them is at work
    long long stride = 0;  ///< numbers of one layer's parameters
};

/// Buffers of one layer that live from its forward to its backward.
template <class L, class B>
struct layer_saved {
    using pass = layer_pass<L>;
    using sum = typename B::precision::sum;
    int* ids = nullptr;    // [B, capacity], chosen rows
    int* live = nullptr;   // [B], how many
    int* first = nullptr;  // [B, capacity], visible keys, where documents or windows need them
    int* last = nullptr;
    sum* raw = nullptr;     // [B, L], s
    sum* biased = nullptr;  // [B, L], u
    typename pass::block::template saved<B> block;

    /// @param keep    memory of this layer alone
    /// @param shared  memory that all layers use in turn, for what a replay computes again
    constexpr void carve(carver& keep, carver& shared, recompute replay, const Dims& d, const extents& e) {
        if (pass::is_sparse) {
            keep(ids, e.own_rows());
            keep(live, e.batch);
            keep(raw, e.all_rows());
            keep(biased, e.all_rows());
        }
        keep(first, e.own_rows());
        keep(last, e.own_rows());
        block.carve(keep, replay == recompute::full ? shared : keep, replay == recompute::none ? keep : shared, d, e,
                    pass::full_keys);
    }
};

/// Buffers of one layer that live during its forward or its backward only.
template <class L, class B>
struct layer_scratch {
    using pass = layer_pass<L>;
    using activation = typename B::precision::activation;
    using sum = typename B::precision::sum;
    activation* grad_a = nullptr;     // [rows, d]
    activation* grad_f = nullptr;     // [rows, d]
    activation* grad_rows = nullptr;  // [rows, d]
    sum* grad_gate = nullptr;         // [B, L], of the gate logits
    sum* grad_loss = nullptr;         // [B, L], of the routing loss alone, where it is detached
    typename pass::block::template scratch<B> block;

    constexpr void carve(carver& take, const Dims& d, const extents& e) {
        take(grad_a, e.own_rows() * d.width);
        take(grad_f, e.own_rows() * d.width);
        take(grad_rows, e.own_rows() * d.width);
        if (pass::is_sparse) {
            take(grad_gate, e.all_rows());
            if (pass::policy.detach) take(grad_loss, e.all_rows());
        }
        block.carve(take, d, e, pass::full_keys);
    }
};

/// One layer of kind L at work.
template <class L, class M, class B>
class layer_worker {
    using pass = layer_pass<L>;
    using block = typename pass::block;
    using T = typename B::precision;
    using View = layer_view<L, M, B>;
    using state = typename block::template state<B>;
    static constexpr Dims dims = M::dims;
    static constexpr sparse_policy policy = pass::policy;
    static constexpr int width = static_cast<int>(dims.width);

  public:
    /// @param capacity  rows of a sequence that there is room for; those that the rule chooses must fit
    layer_worker(B& backend, const View& weights, const stream<B>& st, const layer_saved<L, B>& s,
                 const layer_scratch<L, B>& t, selection_rule rule, int capacity, const state& kept = {})
        : backend_(backend), w_(weights), st_(st), s_(s), t_(t), state_(kept), rule_(rule) {
        // Where every place is taken the count need not be looked at.
        const bool top = rule == selection_rule::top || pass::sparsity == 1;
        const bool full = st.rows.each.live == nullptr && policy.scope == selection_scope::sequence && top &&
                          capacity == ceil_div(st.rows.each.capacity, pass::sparsity);
        const int* live = !pass::is_sparse ? st.rows.each.live : full ? nullptr : s.live;
        rows_ = {st.rows.batch, {capacity, live}};
        ids_ = pass::is_sparse ? s.ids : st.every_row;
    }

    /// Rows that the layer executes.
    const batch_rows& rows() const { return rows_; }

    /// x += gated branches at the chosen rows, b += increment there.
    /// @param run  of a sparse layer in a run of several
    void forward(const route_sums& sums, ffn_step step = {}, const run_routing<B>& run = {}) {
        if constexpr (pass::is_sparse) choose(sums, run);
        execute(step, run);
    }
    /// The first part of `forward` of a sparse layer: which rows.
    void choose(const route_sums& sums, const run_routing<B>& run = {}) {
        if (run.logits_stride == 0)
            backend_.route_logits(logits());
        else if (run.layer == 0)
            version_logits(run, st_.rows, nullptr, 0);
        const bool by_document = policy.scope == selection_scope::document;
        backend_.select({.rows = st_.rows,
                         .capacity = rows_.each.capacity,
                         .sparsity = pass::sparsity,
                         .rule = rule_,
                         .tau = policy.tau,
                         .biased = policy.bias,
                         .logits = s_.raw,
                         .bias = st_.bias,
                         .cut = w_.master(View::at("router.cut")),
                         .documents = by_document ? st_.documents : nullptr,
                         .u = s_.biased,
                         .ids = s_.ids,
                         .live = s_.live,
                         .cut_sum = sums.cut,
                         .cut_groups = sums.cut_groups});
    }
    /// What follows the choice of rows in it.
    void execute(ffn_step step, [[maybe_unused]] const run_routing<B>& run = {}) {
        st_.start != nullptr ? find_positions() : find_visibility();
        block::gather_input(backend_, dims, w_, gathered(st_.x, s_.block.x), s_.block);
        block::forward(backend_, dims, w_, mixer_in(), all_x(), state_, s_.block, t_.block, own(step, false));
        backend_.scatter_residual(residual());
        if constexpr (pass::is_sparse) {
            if (run.logits_stride > 0 && run.layer + 1 < run.layers) version_logits(run, rows_, ids_, run.layer + 1);
        }
    }

    /// Sum of the routing loss over this layer's real rows; after forward.
    void routing_loss(const route_sums& sums) {
        if constexpr (pass::is_sparse) backend_.route_loss(loss(sums.loss, 0, nullptr));
    }

    /// Rewinds x to the layer's input and adds to the gradients of weights and residual stream.
    /// @param loss_scale  loss weight / (sparse layers * rows of the optimiser step)
    /// @param run         of a sparse layer in a run of several
    void backward(recompute replay, double loss_scale, const route_sums& sums, ffn_step step,
                  const run_routing<B>& run = {}) {
        const bool gathers = pass::is_sparse && run.grad_logits != nullptr;
        if (gathers) version_backward(run, rows_, ids_, run.layer + 1);
        constexpr bool rewinds = pass::full_keys;  // before a replay that reads x; else on the way
        if constexpr (rewinds) backend_.scatter(stored(s_.block.x, st_.x, false));
        if (replay == recompute::full) {
            block::norm_input(backend_, dims, w_, rows_, s_.block);
            block::forward(backend_, dims, w_, mixer_in(), all_x(), {}, s_.block, t_.block, own(step, true));
        } else if (replay == recompute::selective) {
            block::replay_cheap(backend_, dims, w_, rows_, s_.block, t_.block);
        }
        auto* grad_gate = gathers ? run.grad_logits + run.layer * st_.rows.capacity() : t_.grad_gate;
        if constexpr (pass::is_sparse) {
            if constexpr (policy.detach) {
                backend_.route_loss(loss(sums.loss, loss_scale, t_.grad_loss));
                clear(backend_, grad_gate, st_.rows.capacity());
            } else {
                backend_.route_loss(loss(sums.loss, loss_scale, grad_gate));
            }
        }
        backend_.scatter_residual_backward({.forward = residual(),
                                            .before = rewinds ? nullptr : s_.block.x,
                                            .grad_x = st_.grad_x,
                                            .grad_a = t_.grad_a,
                                            .grad_f = t_.grad_f,
                                            .grad_logits = grad_gate,
                                            .grad_scale = w_.gradient(View::at("router.scale"))});
        block::backward(backend_, dims, w_, mixer_in(), all_x(), s_.block, t_.block, t_.grad_a, t_.grad_f, t_.grad_rows,
                        pass::full_keys ? st_.grad_x : nullptr, own(step, true));
        backend_.scatter(stored(t_.grad_rows, st_.grad_x, true));
        if constexpr (pass::is_sparse) {
            if (!gathers) router_backward(grad_gate, st_.grad_x);
            if (gathers && run.layer == 0) version_backward(run, st_.rows, nullptr, 0);
            if constexpr (policy.detach) router_backward(t_.grad_loss, nullptr);
        }
    }

  private:
    // The step as this layer's feed-forward part sees it.
    ffn_step own(ffn_step step, bool replay) const {
        step.replay = replay;
        step.sequence = st_.rows.each.capacity;
        step.ids = ids_;
        return step;
    }
    bool needs_visibility() const {
        return block::has_mixer && (st_.documents != nullptr || pass::full_keys || (pass::is_sparse && window() > 0));
    }
    static constexpr int window() { return static_cast<int>(L::mixing(dims).window); }
    void find_visibility() {
        if (!needs_visibility()) return;
        backend_.visibility({.queries = rows_,
                             .keys = pass::full_keys ? st_.rows : rows_,
                             .full_keys = pass::full_keys,
                             .window = window(),
                             .ids = ids_,
                             .documents = st_.documents,
                             .sequence = st_.rows.each.capacity,
                             .first = s_.first,
                             .last = s_.last});
    }
    // Decoding: a row's place in the whole sequence, for its rotary phase and for the cache.
    void find_positions() {
        backend_.positions({.rows = rows_, .ids = ids_, .start = st_.start, .positions = st_.positions});
        if (pass::full_keys) {
            backend_.positions(
                {.rows = st_.rows, .ids = st_.every_row, .start = st_.start, .positions = st_.key_positions});
        }
    }
    mixer_rows<B> mixer_in() const {
        layer_slots<B> depth = st_.slots;
        depth.sequence = st_.rows.each.capacity;
        depth.ids = ids_;
        depth.every_key = pass::full_keys;
        if (st_.start != nullptr) {
            return {.rows = rows_,
                    .key_rows = pass::full_keys ? st_.rows : rows_,
                    .positions = st_.positions,
                    .key_positions = pass::full_keys ? st_.key_positions : st_.positions,
                    .window = window(),
                    .depth = depth,
                    .first_room = s_.first,
                    .last_room = s_.last};
        }
        const bool visible = needs_visibility();
        return {.rows = rows_,
                .key_rows = pass::full_keys ? st_.rows : rows_,
                .positions = ids_,
                .key_positions = pass::full_keys ? nullptr : ids_,
                .first = visible ? s_.first : nullptr,
                .last = visible ? s_.last : nullptr,
                .window = window(),
                .depth = depth};
    }
    const typename T::activation* all_x() const { return pass::full_keys ? st_.x : nullptr; }

    GatherArgs<T> gathered(const typename T::activation* x, typename T::activation* out) const {
        return {.rows = rows_, .sequence = st_.rows.each.capacity, .width = width, .ids = ids_, .x = x, .out = out};
    }
    ScatterArgs<T> stored(const typename T::activation* out, typename T::activation* x, bool adds) const {
        return {.rows = rows_,
                .sequence = st_.rows.each.capacity,
                .width = width,
                .adds = adds,
                .ids = ids_,
                .out = out,
                .x = x};
    }
    ScatterResidualArgs<T> residual() const {
        return {.rows = rows_,
                .sequence = st_.rows.each.capacity,
                .width = width,
                .gate = policy.gate,
                .increment = policy.increment,
                .ids = ids_,
                .gate_logits = policy.gate_logit == routing_logit::biased ? s_.biased : s_.raw,
                .scale = w_.master(View::at("router.scale")),
                .a = s_.block.a,
                .f = s_.block.f,
                .x = st_.x,
                .bias = pass::is_sparse && policy.bias ? st_.bias : nullptr};
    }
    RouteLogitsArgs<T> logits() const {
        return {.rows = st_.rows,
                .width = width,
                .x = st_.x,
                .weight = w_.master(View::at("router.weight")),
                .logits = s_.raw};
    }
    RouteLossArgs<T> loss(double* sum, double scale, typename T::sum* grad) const {
        return {.rows = st_.rows,
                .chosen = rows_,
                .scale = scale,
                .logits = policy.loss_logit == routing_logit::biased ? s_.biased : s_.raw,
                .ids = s_.ids,
                .loss_sum = sum,
                .grad_logits = grad};
    }
    void version_logits(const run_routing<B>& run, const batch_rows& rows, const int* ids, int first) {
        backend_.route_version_logits({.rows = rows,
                                       .sequence = st_.rows.each.capacity,
                                       .width = width,
                                       .layers = run.layers,
                                       .first = first,
                                       .ids = ids,
                                       .x = st_.x,
                                       .weight = w_.master(View::at("router.weight")) - run.layer * run.stride,
                                       .stride = run.stride,
                                       .logits = s_.raw - run.layer * run.logits_stride,
                                       .logits_stride = run.logits_stride});
    }
    void version_backward(const run_routing<B>& run, const batch_rows& rows, const int* ids, int first) {
        backend_.route_version_backward({.rows = rows,
                                         .sequence = st_.rows.each.capacity,
                                         .width = width,
                                         .layers = run.layers,
                                         .first = first,
                                         .ids = ids,
                                         .x = st_.x,
                                         .weight = w_.master(View::at("router.weight")) - run.layer * run.stride,
                                         .stride = run.stride,
                                         .grad_logits = run.grad_logits,
                                         .later = run.later,
                                         .grad_x = st_.grad_x,
                                         .sums = run.sums,
                                         .grad_weight = w_.gradient(View::at("router.weight")) +
                                                        run.layer * run.stride,  // they lie in reverse order
                                         .grad_stride = -run.stride});
    }
    void router_backward(const typename T::sum* grad_logits, typename T::activation* grad_x) {
        backend_.route_logits_backward({.forward = logits(),
                                        .grad_logits = grad_logits,
                                        .grad_x_logits = grad_logits,
                                        .grad_weight = w_.gradient(View::at("router.weight")),
                                        .grad_x = grad_x});
    }

    B& backend_;
    View w_;
    stream<B> st_;
    layer_saved<L, B> s_;
    layer_scratch<L, B> t_;
    state state_;
    selection_rule rule_;
    batch_rows rows_;
    const int* ids_ = nullptr;
};

}  // namespace sdepth::inline v0
