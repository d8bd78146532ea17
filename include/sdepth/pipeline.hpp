// SPDX-License-Identifier: MIT
// A model at work on a backend: forward and backward, each a walk over the runs of the formula. Rank 6.
#pragma once

#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "sdepth/depth_mass.hpp"
#include "sdepth/error.hpp"
#include "sdepth/expert_load.hpp"
#include "sdepth/ops/ends.hpp"
#include "sdepth/ops/initial.hpp"
#include "sdepth/ops/update.hpp"
#include "sdepth/parameter_update.hpp"
#include "sdepth/plan.hpp"
#include "sdepth/step.hpp"
#include "sdepth/step_losses.hpp"

namespace sdepth::inline v0 {

/// For `pipeline::evaluate` where nobody looks at single layers.
struct unobserved {
    void operator()(const auto&...) const {}
};

/// Model M on backend B with the memory of run R, allocated once.
template <class M, class B, Run R>
class pipeline {
    using memory_plan = plan<M, B, R>;
    using ends = end_places<M>;
    static constexpr int width = static_cast<int>(M::dims.width);

  public:
    using model = M;
    using backend_type = B;
    static constexpr Run run_sizes = R;

    explicit pipeline(B& backend)
        : backend_(backend), arena_(backend.allocate(static_cast<std::size_t>(memory_plan::peak_bytes))) {
        auto* base = static_cast<std::byte*>(arena_.data());
        carver parameters(base);
        parameters_.carve(parameters, R.moments);
        carver batch(base + memory_plan::parameter_bytes);
        batch_.carve(batch, R);
        carver slots(base + memory_plan::parameter_bytes + memory_plan::batch_bytes);
        slots_.carve(slots, R, true);
        layers_ = base + memory_plan::parameter_bytes + memory_plan::batch_bytes + memory_plan::slot_bytes;
        workspace_ = layers_ + memory_plan::layer_region_bytes;
        backend_.use_workspace(workspace_);

        clear(backend_, parameters_.weights, tensor_table<M>.elements);
        if (parameters_.has_copies) clear(backend_, parameters_.master, tensor_table<M>.elements);
        clear(backend_, parameters_.gradients, tensor_table<M>.elements);
        reset_optimiser();
        std::vector<int> rows(static_cast<std::size_t>(R.batch * R.seq));
        auto length = static_cast<std::size_t>(R.seq);  // no constant, or clang warns of the 0 that a verdict refuses
        for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<int>(i % length);
        write(backend_, batch_.every_row, rows.data(), static_cast<long long>(rows.size()));
        clear(backend_, batch_.scalars, 1);
        step_update().clear_sums(batch_.sums);
    }
    pipeline(const pipeline&) = delete;
    pipeline& operator=(const pipeline&) = delete;

    const parameter_memory<M, B>& parameters() const { return parameters_; }
    B& backend() { return backend_; }
    /// Memory that was taken, all of it.
    std::size_t bytes() const { return arena_.bytes(); }

    /// First values of every tensor.
    void initialise(std::uint64_t seed) {
        for_each_file_tensor<M>([&](const file_tensor& t) {
            backend_.initialise({.elements = t.elements,
                                 .cols = t.row->tensor.cols,
                                 .start = t.row->tensor.start,
                                 .seed = seed,
                                 .stream = detail::stream_of(t.name),
                                 .master = parameters_.master + t.offset,
                                 .weight = parameters_.copy_at(t.offset)});
        });
        reset_optimiser();
    }
    /// Throws sdepth::error if Run::moments keeps none for all that this rule updates.
    static void require_moments(optimiser kind) {
        if (kind == optimiser::adamw && R.moments == optimiser::muon)
            throw error(
                "the run keeps the moments that Muon needs and no others: train with Muon, or set Run::moments "
                "to optimiser::adamw");
    }
    void reset_optimiser() {
        clear(backend_, parameters_.first, tensor_table<M>.elements);
        clear(backend_, parameters_.second, second_moment_elements<M>(R.moments));
    }

    /// Forward and backward of one micro-batch: adds to gradients and sums.
    void accumulate(const batch_view& batch, const step_totals& totals) {
        load(batch);
        backend_.repeat(accumulation_[fresh_ ? 0 : 1], key_of(batch, selection_rule::top, totals), [&] {
            embed();
            for (std::size_t r = 0; r < M::runs.size(); ++r) forward_run(pass_aim::training, r, batch);
            head(pass_aim::training, 1.0 / static_cast<double>(totals.targets));
            norm_backward();
            clear(backend_, slots_.sums, slot_elements);
            for (std::size_t r = M::runs.size(); r-- > 0;) backward_run(r, batch, totals);
            backend_.embed_backward(
                {.forward = embedding(), .grad_x = batch_.grad_x, .grad_table = gradient(ends::embedding)});
        });
        fresh_ = false;
    }

    /// The forward of `accumulate` alone: adds the same to the sums, bit for bit, and nothing to the gradients. For
    /// finite differences.
    void forward(const batch_view& batch) {
        load(batch);
        embed();
        for (std::size_t r = 0; r < M::runs.size(); ++r) forward_run(pass_aim::forward, r, batch);
        head(pass_aim::forward);
    }

    /// The weights follow the gradients of the micro-batches since the last call; gradients and sums then start from
    /// zero. If a gradient or the loss is not finite, no weight changes, then or in later steps, until `last_losses`
    /// has said so. Nothing here waits for the backend. Throws sdepth::error if Run::moments keeps too few moments.
    void advance(const update_settings& settings) {
        require_moments(settings.kind);
        backend_.use_workspace(workspace_);
        if (fresh_) clear(backend_, parameters_.gradients, tensor_table<M>.elements);  // no micro-batch wrote them
        const update_inputs inputs{settings.rate, settings.step};
        write(backend_, batch_.inputs, &inputs, 1);
        update_settings key = settings;  // what does not come through the inputs
        key.rate = 0;
        key.step = 0;
        backend_.repeat(update_, key, [&] { step_update().run(settings); });
        fresh_ = true;
    }
    /// The first step whose loss or gradient was not finite, of those that `last_losses` has not told of; 0 = none.
    long long bad_step() {
        update_scalars scalars;
        read(backend_, &scalars, batch_.scalars, 1);
        return scalars.bad_step;
    }
    /// Losses of the step before the last `advance`, for `totals` as in that step. Throws sdepth::error if a loss or
    /// gradient since the last call was not finite.
    step_losses last_losses(const step_totals& totals) {
        update_scalars scalars;
        read(backend_, &scalars, batch_.scalars, 1);
        if (scalars.bad_step != 0) {
            clear(backend_, batch_.scalars, 1);
            throw error("step " + std::to_string(scalars.bad_step) +
                        ": loss or gradient is not finite; no weight was changed: lower the learning rate");
        }
        step_losses losses = losses_of(batch_.last, totals);
        losses.gradient_norm = scalars.norm;
        return losses;
    }
    /// Both.
    step_losses update(const update_settings& settings, const step_totals& totals) {
        advance(settings);
        return last_losses(totals);
    }
    /// Calls f(layer number from 0, its buffers, rows of ids a sequence) for each sparse layer of the last micro-batch.
    template <class F>
    void for_each_routed_layer(F f) {
        for (std::size_t r = 0; r < M::runs.size(); ++r) {
            visit_type(typename M::kinds{}, M::runs[r].kind, [&]<class L>(std::type_identity<L>) {
                if constexpr (layer_pass<L>::is_sparse) {
                    for (long long i = 0; i < M::runs[r].times; ++i) {
                        with_layer<L>(r, i, [&](auto&, const auto& saved) {
                            f(M::runs[r].first + i, saved,
                              row_capacity<L>(selection_rule::top, static_cast<int>(R.seq),
                                              static_cast<int>(R.max_documents)));
                        });
                    }
                }
            });
        }
    }
    /// Calls f(layer number from 0, its expert buffers, rows that it executed, ways of a row) for each expert layer of
    /// the last micro-batch.
    template <class F>
    void for_each_expert_choice(F f) {
        for (std::size_t r = 0; r < M::runs.size(); ++r) {
            visit_type(typename M::kinds{}, M::runs[r].kind, [&]<class L>(std::type_identity<L>) {
                using ffn = layer_ffn<L>;
                if constexpr (ffn::experts > 0) {
                    for (long long i = 0; i < M::runs[r].times; ++i) {
                        with_layer<L>(r, i, [&](auto& worker, const auto& saved) {
                            f(M::runs[r].first + i, saved.block.ffn, worker.rows(), std::type_identity<ffn>{});
                        });
                    }
                }
            });
        }
    }
    /// Losses of the micro-batches so far.
    step_losses losses(const step_totals& totals) { return losses_of(batch_.sums, totals); }
    /// Choices of the micro-batches so far, of each expert layer that has its own weights.
    std::vector<expert_load> expert_loads() { return host_sums(backend_, batch_.sums).expert_loads(); }
    /// Depth slots that no layer reads from now on, by number in the order of writing: a study at fixed
    /// weights.
    void hide_slots(const std::vector<long long>& numbers) {
        ++hidings_;
        hidden_.assign(static_cast<std::size_t>(depth.before.back().written), 0);
        for (const long long number : numbers) {
            if (number < 0 || number >= depth.before.back().written) {
                throw error("depth slot " + std::to_string(number) + " is not one of the model's " +
                            std::to_string(depth.before.back().written) + "; they count from 0 in the order of layers");
            }
            hidden_[static_cast<std::size_t>(number)] = 1;
        }
    }
    /// Forgets the micro-batches so far: gradients and sums start from zero.
    void discard() {
        step_update().restart();
        fresh_ = true;
    }

    /// Sum of the language loss over the batch's targets, under one selection rule. No weight, cut or bias changes, and
    /// a step between two of whose micro-batches it comes goes on as without it.
    /// Does not compile for a model whose routers see the future.
    /// @param observe  called for each sparse layer as observe(layer number from 0, its routing_record)
    /// @param loads    set to the choices of expert layers, which drop nothing here; may be null
    /// @param masses   set to the shares of attention that went to depth slots; may be null
    template <class Observe>
    double evaluate(const batch_view& batch, selection_rule rule, Observe observe,
                    std::vector<expert_load>* loads = nullptr, std::vector<depth_mass>* masses = nullptr) {
        static_assert(require_causal<M>());
        return language_loss(batch, rule, observe, loads, masses);
    }
    double evaluate(const batch_view& batch, selection_rule rule) { return evaluate(batch, rule, unobserved{}); }
    /// The same for a model whose routers see the future: the loss of a prediction that nobody could have made in time.
    template <class Observe>
    double evaluate_non_causal(const batch_view& batch, Observe observe, std::vector<expert_load>* loads = nullptr,
                               std::vector<depth_mass>* masses = nullptr) {
        static_assert(!is_causal<M>, "sdepth: this model is causal: call evaluate");
        return language_loss(batch, selection_rule::top, observe, loads, masses);
    }

    /// Logits of every row, [B, L, V] in host memory, under the causal rule.
    std::vector<typename B::precision::activation> logits(const batch_view& batch) {
        static_assert(require_causal<M>());
        load(batch);
        forward_only(batch, selection_rule::threshold);
        final_norm();
        std::vector<typename B::precision::activation> out(static_cast<std::size_t>(R.batch * R.seq * M::dims.vocab));
        constexpr int chunk = detail::logit_rows<B>(R);
        for (long long first = 0; first < R.batch * R.seq; first += chunk) {
            const long long left = R.batch * R.seq - first;
            const int rows = static_cast<int>(left < chunk ? left : chunk);
            backend_.linear({.rows = {1, {rows, nullptr}},
                             .inputs = width,
                             .outputs = static_cast<int>(M::dims.vocab),
                             .x = batch_.y + first * width,
                             .weight = weight(ends::head),
                             .y = batch_.logits});
            read(backend_, out.data() + first * M::dims.vocab, batch_.logits, rows * M::dims.vocab);
        }
        return out;
    }

  private:
    using host_sums = detail::host_sums<M>;
    step_losses losses_of(const step_sums<M>& sums, const step_totals& totals) {
        return host_sums(backend_, sums).losses(totals);
    }

    // What the operations of a pass over one micro-batch depend on beside memory.
    struct pass_key {
        double targets = 0, rows = 0, own_rows = 0;
        bool live = false, documents = false;
        int hidings = 0;
        std::uint64_t seed = 0, first = 0;
        selection_rule rule = selection_rule::top;

        friend bool operator==(const pass_key&, const pass_key&) = default;
    };
    pass_key key_of(const batch_view& batch, selection_rule rule, const step_totals& totals = {}) const {
        pass_key key{.targets = static_cast<double>(totals.targets),
                     .rows = static_cast<double>(totals.rows),
                     .own_rows = rows_,
                     .live = live_ != nullptr,
                     .documents = documents_ != nullptr,
                     .hidings = hidings_,
                     .rule = rule};
        if constexpr (expert_layers < M >> 0) key.seed = batch.seed, key.first = batch.first;  // keys of noise
        return key;
    }

    const auto* weight(tensor_place place) const { return parameters_.weights + place.offset; }
    typename B::precision::gradient* gradient(tensor_place place) const {
        return parameters_.gradients + mirrored<M>(place.offset, place.elements);
    }

    // ---- the parts of a pass ----

    // What a pass over a micro-batch is for: `accumulate`, its forward alone, or the loss under a selection rule.
    enum class pass_aim { training, forward, evaluation };

    // An evaluation has its own.
    const step_sums<M>& sums_for(pass_aim aim) const {
        return aim == pass_aim::evaluation ? batch_.evaluated : batch_.sums;
    }

    batch_rows all_rows() const { return {static_cast<int>(R.batch), {static_cast<int>(R.seq), live_}}; }

    void load(const batch_view& batch) {
        constexpr long long rows = R.batch * R.seq;
        backend_.use_workspace(workspace_);
        write(backend_, batch_.tokens, batch.tokens, rows);
        if (batch.targets != nullptr) write(backend_, batch_.targets, batch.targets, rows);
        if (batch.documents != nullptr) write(backend_, batch_.documents, batch.documents, rows);
        if (batch.live != nullptr) write(backend_, batch_.live, batch.live, R.batch);
        live_ = batch.live != nullptr ? batch_.live : nullptr;
        documents_ = batch.documents != nullptr ? batch_.documents : nullptr;
        rows_ = static_cast<double>(rows);
        if (batch.live == nullptr) return;
        rows_ = 0;
        for (long long b = 0; b < R.batch; ++b) rows_ += batch.live[b];
    }
    EmbedArgs<typename B::precision> embedding() const {
        return {.rows = all_rows(),
                .width = width,
                .vocab = static_cast<int>(M::dims.vocab),
                .tokens = batch_.tokens,
                .table = weight(ends::embedding),
                .x = batch_.x};
    }
    void embed() {
        clear(backend_, batch_.bias, R.batch * R.seq);
        clear(backend_, slots_.mask, R.batch * R.seq * depth.stored);
        if (live_ != nullptr) clear(backend_, batch_.x, R.batch * R.seq * width);
        backend_.embed(embedding());
    }
    RmsNormArgs<typename B::precision> last_norm() const {
        return {.rows = all_rows(),
                .width = width,
                .epsilon = Ends::norm_epsilon,
                .x = batch_.x,
                .weight = parameters_.master + ends::norm.offset,
                .y = batch_.y,
                .rstd = batch_.rstd};
    }
    void final_norm() { backend_.rms_norm(last_norm()); }

    // The language loss; in training its gradients too, times `scale`.
    void head(pass_aim aim, double scale = 0) {
        const bool training = aim == pass_aim::training;
        final_norm();
        backend_.head_loss({.rows = all_rows(),
                            .width = width,
                            .vocab = static_cast<int>(M::dims.vocab),
                            .scale = scale,
                            .y = batch_.y,
                            .weight = weight(ends::head),
                            .targets = batch_.targets,
                            .loss_sum = sums_for(aim).loss,
                            .grad_y = training ? batch_.grad_y : nullptr,
                            .grad_weight = training ? gradient(ends::head) : nullptr,
                            .logits = batch_.logits,
                            .chunk = detail::logit_rows<B>(R)});
    }
    void norm_backward() {
        if (live_ != nullptr) clear(backend_, batch_.grad_x, R.batch * R.seq * width);
        backend_.rms_norm_backward({.forward = last_norm(),
                                    .grad_y = batch_.grad_y,
                                    .grad_x = batch_.grad_x,
                                    .grad_weight = gradient(ends::norm)});
    }

    // As layer i of run r sees it.
    template <class L>
    stream<B> stream_at(std::size_t r, long long i, bool evaluating) const {
        const detail::depth_place& place = depth.before[r];
        layer_slots<B> slots = slots_.seen_after(place.written + i * L::state(M::dims).slots_written);
        slots.hidden = hidden_.empty() ? nullptr : hidden_.data();
        if (evaluating && measures_depth_mass<L>())
            slots.mass = batch_.evaluated.depth_mass + (place.measured + i) * mass_numbers;
        return {.rows = all_rows(),
                .every_row = batch_.every_row,
                .documents = documents_,
                .x = batch_.x,
                .grad_x = batch_.grad_x,
                .bias = batch_.bias,
                .slots = slots};
    }
    // Layer i of run r: its own place in the routing losses, its owner's in the cuts, for passes of a loop share a cut.
    route_sums sums_of(pass_aim aim, std::size_t r, long long i) const {
        const auto owner = static_cast<std::size_t>(M::runs[r].weights);
        const step_sums<M>& sums = sums_for(aim);
        return {sums.route_loss + sparse_before[r] + i, sums.cut + sparse_before[owner] + i,
                sums.cut_groups + sparse_before[owner] + i};
    }
    static constexpr auto sparse_before = detail::sparse_layers_before<M>();
    static constexpr auto experts_before = detail::experts_before<M>();
    static constexpr auto depth = detail::depth_places_of<M>;
    static constexpr long long slot_elements =
        detail::usable_in<M, detail::evaluated(R)>()
            ? R.batch * R.seq * depth.stored * 2 * M::dims.kv() * M::dims.head_dim
            : 0;
    static constexpr long long mass_numbers = detail::depth_mass_numbers<M>();

    // What layer i of run r routes experts with; statistics go to the owner of the weights.
    template <class L>
    ffn_step expert_step(pass_aim aim, std::size_t r, long long i, const batch_view& batch) const {
        using ffn = layer_ffn<L>;
        ffn_step step{.training = aim != pass_aim::evaluation, .rows = rows_, .seed = batch.seed, .first = batch.first};
        step.layer = static_cast<std::uint32_t>(M::runs[r].first + i);
        if constexpr (ffn::experts > 0) {
            const detail::expert_place& place = experts_before[static_cast<std::size_t>(M::runs[r].weights)];
            const step_sums<M>& sums = sums_for(aim);
            step.load = sums.expert_load + place.experts + i * ffn::experts;
            step.counts = sums.expert_counts + 3 * (place.layers + i);
            step.sums = sums.expert_sums + 3 * (place.layers + i);
        }
        return step;
    }
    template <class L>
    static layer_memory<L, B> memory_at(std::byte* keep, std::byte* shared, selection_rule rule) {
        layer_memory<L, B> memory;
        carver kept(keep), scratch(shared);
        memory.carve(kept, scratch, rule, M::dims, R);
        return memory;
    }
    static constexpr int sequence = static_cast<int>(R.seq);
    // Calls f(worker, its buffers) for layer i of run r in training.
    template <class L, class F>
    void with_layer(std::size_t r, long long i, F f) {
        constexpr selection_rule rule = selection_rule::top;
        std::byte* keep = layers_ + memory_plan::saved_offsets[r] + i * memory_plan::template layer<L>(rule).kept;
        const auto memory = memory_at<L>(keep, layers_ + memory_plan::saved_bytes, rule);
        constexpr int capacity = row_capacity<L>(rule, sequence, static_cast<int>(R.max_documents));
        layer_worker<L, M, B> worker = worker_at<L>(pass_aim::training, r, i, memory, rule, capacity);
        f(worker, memory.saved);
    }
    // Layer i of run r, with room for `capacity` rows of a sequence.
    template <class L>
    layer_worker<L, M, B> worker_at(pass_aim aim, std::size_t r, long long i, const layer_memory<L, B>& memory,
                                    selection_rule rule, int capacity) {
        static_assert(writes_all_matrices<L>(M::dims),
                      "sdepth: `written_matrices` of the layer's passes and its tensors of Muon's group differ");
        const layer_view<L, M, B> view(parameters_.weights, parameters_.master, parameters_.gradients,
                                       tensor_table<M>.run_offsets[r] + i * layer_layout<L, M::dims>.stride,
                                       !(fresh_ && writes_matrices<L>() && first_back[r]));
        return {backend_, view,    stream_at<L>(r, i, aim == pass_aim::evaluation), memory.saved, memory.scratch,
                rule,     capacity};
    }

    static std::string range_name(std::size_t r, const char* way) {
        return "run " + std::to_string(r) + ", layers " + std::to_string(M::runs[r].first) + " to " +
               std::to_string(M::runs[r].first + M::runs[r].times - 1) + ", " + way;
    }
    // The backward adds the routing losses; where there is none, they are added here.
    void forward_run(pass_aim aim, std::size_t r, const batch_view& batch) {
        [[maybe_unused]] const typename B::range named(range_name(r, "forward"));
        visit_type(typename M::kinds{}, M::runs[r].kind, [&]<class L>(std::type_identity<L>) {
            run_routing<B> routing{.layers = static_cast<int>(M::runs[r].times),
                                   .stride = layer_layout<L, M::dims>.stride};
            if (reads_versions<L>(M::runs[r].times)) {
                routing.logits_stride = memory_plan::template layer<L>(selection_rule::top).kept /
                                        static_cast<long long>(sizeof(typename B::precision::sum));
            }
            for (long long i = 0; i < M::runs[r].times; ++i) {
                routing.layer = static_cast<int>(i);
                if (clears_bias<L>(sparse_before[r] + i)) clear(backend_, batch_.bias, R.batch * R.seq);
                with_layer<L>(r, i, [&](auto& worker, const auto&) {
                    worker.forward(sums_of(aim, r, i), expert_step<L>(aim, r, i, batch), routing);
                    if (aim == pass_aim::forward) worker.routing_loss(sums_of(aim, r, i));
                });
            }
        });
    }
    void backward_run(std::size_t r, const batch_view& batch, const step_totals& totals) {
        [[maybe_unused]] const typename B::range named(range_name(r, "backward"));
        visit_type(typename M::kinds{}, M::runs[r].kind, [&]<class L>(std::type_identity<L>) {
            const double scale = layer_pass<L>::policy.loss_weight /
                                 (static_cast<double>(sparse_layers<M>) * static_cast<double>(totals.rows));
            run_routing<B> routing;
            if (gathers_versions<L>(M::runs[r].times)) {
                // With its type named: nvcc 13.0 forgets the members' names in an assignment from braces alone.
                routing = run_routing<B>{.grad_logits = batch_.route_grad,
                                         .later = batch_.route_later,
                                         .sums = batch_.route_sums,
                                         .layers = static_cast<int>(M::runs[r].times),
                                         .stride = layer_layout<L, M::dims>.stride};
                clear(backend_, batch_.route_later, R.batch * R.seq);
                clear(backend_, batch_.route_sums, B::route_parts * M::runs[r].times * width);
            }
            for (long long i = M::runs[r].times; i-- > 0;) {
                routing.layer = static_cast<int>(i);
                backend_.join();  // layers share their scratch
                ffn_step step = expert_step<L>(pass_aim::training, r, i, batch);
                const double share = rows_ / static_cast<double>(totals.rows);
                constexpr detail::expert_place all = experts_before.back();
                if constexpr (all.layers > 0) step.z_scale = share / static_cast<double>(all.layers);
                if constexpr (all.balanced > 0) step.balance_scale = share / static_cast<double>(all.balanced);
                with_layer<L>(r, i, [&](auto& worker, const auto&) {
                    worker.backward(R.replay, scale, sums_of(pass_aim::training, r, i), step, routing);
                });
            }
        });
    }
    template <class Observe>
    double language_loss(const batch_view& batch, selection_rule rule, Observe observe, std::vector<expert_load>* loads,
                         std::vector<depth_mass>* masses) {
        load(batch);
        step_update().clear_sums(batch_.evaluated);
        backend_.repeat(evaluation_[rule == selection_rule::top ? 0 : 1], key_of(batch, rule), [&] {
            forward_only(batch, rule);
            head(pass_aim::evaluation);
        });
        for_each_record([&](long long layer, const routing_record<B>& record) { observe(layer, record); });
        const host_sums sums(backend_, batch_.evaluated);
        if (loads != nullptr) *loads = sums.expert_loads();
        if (masses != nullptr) *masses = sums.depth_masses();
        return sums.language();
    }
    void forward_only(const batch_view& batch, selection_rule rule) {
        embed();
        for (std::size_t r = 0; r < M::runs.size(); ++r) {
            visit_type(typename M::kinds{}, M::runs[r].kind, [&]<class L>(std::type_identity<L>) {
                for (long long i = 0; i < M::runs[r].times; ++i) {
                    if (clears_bias<L>(sparse_before[r] + i)) clear(backend_, batch_.bias, R.batch * R.seq);
                    evaluate_layer<L>(r, i, batch, rule);
                }
            });
        }
    }
    // A sparse layer executes its rows in the least room that holds them: under a causal rule the backend finds out
    // which that is, for only it knows how many were chosen.
    template <class L>
    void evaluate_layer(std::size_t r, long long i, const batch_view& batch, selection_rule rule) {
        constexpr auto aim = pass_aim::evaluation;
        constexpr auto bytes = memory_plan::template layer<L>(selection_rule::threshold);
        std::byte* const keep = layers_ + memory_plan::record_bytes;
        const layer_memory<L, B> own = memory_at<L>(keep, keep + bytes.kept, selection_rule::threshold);
        const ffn_step step = expert_step<L>(aim, r, i, batch);
        if constexpr (layer_pass<L>::is_sparse) {
            const route_sums sums = sums_of(aim, r, i);
            layer_memory<L, B> recorded = own;
            const routing_record<B> record = record_at(sparse_before[r] + i);
            recorded.saved.ids = record.ids;
            recorded.saved.live = record.live;
            recorded.saved.biased = record.biased;
            auto worker = worker_at<L>(aim, r, i, recorded, rule, sequence);
            worker.choose(sums);
            const auto execute = [&](int capacity) {
                if (R.batch == 1 || capacity == sequence)
                    worker_at<L>(aim, r, i, recorded, rule, capacity).execute(step);
                else  // the rows of a sequence lie closer to the next one's, and so must their numbers
                    worker_at<L>(aim, r, i, own, rule, capacity).forward({}, step);
            };
            if (rule == selection_rule::top) {
                execute(row_capacity<L>(rule, sequence, static_cast<int>(R.max_documents)));
            } else {
                constexpr room_steps rooms = rooms_of<L>(sequence);
                backend_.fitting(record.live, static_cast<int>(R.batch), rooms.rows.data(), rooms.size, execute);
            }
            worker.routing_loss(sums);
        } else {
            worker_at<L>(aim, r, i, own, rule, sequence).forward({}, step);
        }
    }
    routing_record<B> record_at(long long sparse_index) const {
        carver take(layers_ + sparse_index * memory_plan::each_record_bytes);
        routing_record<B> record;
        record.carve(take, R);
        return record;
    }
    // Calls f(layer number from 0, its record) for each sparse layer of the last evaluation.
    template <class F>
    void for_each_record(F f) {
        for (std::size_t r = 0; r < M::runs.size(); ++r)
            for (long long i = 0; i < sparse_before[r + 1] - sparse_before[r]; ++i)
                f(M::runs[r].first + i, record_at(sparse_before[r] + i));
    }

    parameter_update<M, B, R> step_update() const { return {backend_, parameters_, batch_}; }
    // Runs whose backward is the first of those that share their weights.
    static constexpr auto first_back = [] {
        std::array<bool, M::runs.size()> first{};
        for (std::size_t r = 0; r < first.size(); ++r) {
            first[r] = true;
            for (std::size_t later = r + 1; later < first.size(); ++later) {
                if (M::runs[later].weights == M::runs[r].weights) first[r] = false;
            }
        }
        return first;
    }();

    B& backend_;
    typename B::memory arena_;
    parameter_memory<M, B> parameters_;
    batch_memory<M, B> batch_;
    slot_memory<M, B> slots_;
    bool fresh_ = true;                 // no micro-batch since the last update
    std::vector<std::uint8_t> hidden_;  // depth slots that nobody reads
    int hidings_ = 0;                   // how often that changed
    std::byte* layers_ = nullptr;
    std::byte* workspace_ = nullptr;
    // Of a step's first micro-batch and of the others; of an evaluation by each rule.
    typename B::template recording<pass_key> accumulation_[2], evaluation_[2];
    typename B::template recording<update_settings> update_;
    const int* live_ = nullptr;
    double rows_ = 0;  // real tokens of the micro-batch
    const int* documents_ = nullptr;
};

}  // namespace sdepth::inline v0
