// SPDX-License-Identifier: MIT
// The training loop: batch, step, log, evaluate, save. It knows pipelines and files, no layer. Rank 7.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sdepth/checkpoint.hpp"
#include "sdepth/data.hpp"
#include "sdepth/log.hpp"
#include "sdepth/routing_statistics.hpp"
#include "sdepth/schedule.hpp"

namespace sdepth::inline v0 {

/// What a run is asked to do. Sizes of the model and of a micro-batch are in the pipeline's type.
struct training_settings {
    long long steps = 1000;
    long long sequences = 0;  ///< of one optimiser step, a multiple of Run::batch; 0 = one micro-batch
    optimiser kind = optimiser::adamw;
    double rate = 1e-3;    ///< peak learning rate
    double warmup = 0.01;  ///< share of the steps in which the rate rises to its peak
    double decay = 0.1;
    double clip = 1;
    std::uint64_t seed = 1;
    long long log_every = 1;             ///< steps between two readings of the losses, which wait for the backend
    long long evaluate_every = 0;        ///< steps; 0 = at the end only
    long long save_every = 0;            ///< steps; 0 = at the end only
    std::filesystem::path checkpoint{};  ///< training file; empty = none
    std::filesystem::path log{};         ///< JSON Lines; empty = none
};

/// Held-out losses of one evaluation, nats a token, each over every held-out token once.
struct evaluation {
    double causal = 0;          ///< under the deployable threshold rule; not a number where routers see the future
    double top = 0;             ///< under the training rule, which sees the future
    route_report causal_route;  ///< masks of the pass under the threshold rule
    route_report top_route;     ///< masks of the pass under the training rule
    std::vector<expert_load> experts;  ///< choices of expert layers in the causal pass, or the only one
    std::vector<depth_mass> depth;     ///< attention to depth slots in the same pass
    std::int64_t tokens = 0;

    double gap() const { return causal - top; }
};

/// What the run reports while it goes on, at the steps where losses are read.
struct progress {
    long long step = 0;  ///< steps done
    step_losses losses;
    double rate = 0;
    double tokens_per_second = 0;
    double seconds_left = 0;
};

/// A batch as the pipeline takes it: documents and padding only where there are any, for plain batches run faster.
inline batch_view view_of(const token_batch& batch) {
    const bool documents = std::any_of(batch.document.begin(), batch.document.end(), [](int d) { return d > 0; });
    const bool padding = std::any_of(batch.live.begin(), batch.live.end(), [&](int n) { return n < batch.length; });
    return {batch.tokens.data(), batch.targets.data(), documents ? batch.document.data() : nullptr,
            padding ? batch.live.data() : nullptr};
}

namespace detail {

// Copies the masks of one sparse layer to the observer.
template <class Pipeline, class Saved>
void observe_layer(Pipeline& pipeline, route_observer& observer, const token_batch& batch, long long layer,
                   const Saved& saved) {
    constexpr int sequences = static_cast<int>(Pipeline::run_sizes.batch);
    constexpr int length = static_cast<int>(Pipeline::run_sizes.seq);
    constexpr auto rows = static_cast<std::size_t>(sequences) * static_cast<std::size_t>(length);
    std::vector<int> ids(rows), live(static_cast<std::size_t>(sequences));
    std::vector<typename Pipeline::backend_type::precision::sum> logits(rows);
    read(pipeline.backend(), ids.data(), saved.ids, static_cast<long long>(rows));
    read(pipeline.backend(), live.data(), saved.live, sequences);
    read(pipeline.backend(), logits.data(), saved.biased, static_cast<long long>(rows));
    observer.observe(layer, sequences, length, length, ids.data(), live.data(), logits.data(), batch.live.data());
}

inline void add_loads(std::vector<expert_load>& all, const std::vector<expert_load>& more) {
    all.resize(more.size());
    for (std::size_t i = 0; i < more.size(); ++i) all[i].layer = more[i].layer, all[i].add(more[i]);
}

// Adds what a log line says about expert layers, in order; nothing where there are none. `expert_load` joins the lists
// of all layers, `experts_of_layer` numbers each.
inline void append_loads(std::vector<json_log::member>& line, const std::vector<expert_load>& loads) {
    if (loads.empty()) return;
    std::vector<double> imbalance, entropy;
    std::vector<long long> layer, experts, load, dropped, moved;
    for (const expert_load& of : loads) {
        layer.push_back(of.layer);
        experts.push_back(std::ssize(of.load));
        load.insert(load.end(), of.load.begin(), of.load.end());
        imbalance.push_back(of.imbalance());
        entropy.push_back(of.entropy);
        dropped.push_back(of.dropped);
        moved.push_back(of.moved);
    }
    const auto list = [&]<class T>(std::string_view name, const std::vector<T>& of) {
        line.emplace_back(name, std::span<const T>(of));
    };
    list("expert_layer", layer);
    list("experts_of_layer", experts);
    list("expert_load", load);
    list("expert_imbalance", imbalance);
    list("expert_entropy", entropy);
    list("expert_dropped", dropped);
    list("expert_moved", moved);
}

inline void add_masses(std::vector<depth_mass>& all, const std::vector<depth_mass>& more) {
    all.resize(more.size());
    for (std::size_t i = 0; i < more.size(); ++i) all[i].add(more[i]);
}

// Adds what a log line says about depth attention, in order; nothing where there is none. `depth_mass_of_head` joins
// the lists of all layers, each as long as the model has query heads.
inline void append_masses(std::vector<json_log::member>& line, const std::vector<depth_mass>& masses) {
    if (masses.empty()) return;
    std::vector<long long> layer;
    std::vector<double> share, even, of_head;
    for (const depth_mass& of : masses) {
        layer.push_back(of.layer);
        share.push_back(of.share());
        even.push_back(of.share_if_even());
        for (std::size_t head = 0; head < of.heads(); ++head) of_head.push_back(of.share(head));
    }
    line.emplace_back("depth_layer", std::span<const long long>(layer));
    line.emplace_back("depth_mass", std::span<const double>(share));
    line.emplace_back("depth_mass_if_even", std::span<const double>(even));
    line.emplace_back("depth_mass_of_head", std::span<const double>(of_head));
}

}  // namespace detail

/// Evaluates a pipeline on a whole text. A model whose routers see the future has a loss under the training rule only.
template <class Pipeline>
evaluation evaluate(Pipeline& pipeline, const corpus& text, document_end end = document_end::next) {
    using M = typename Pipeline::model;
    constexpr Run r = Pipeline::run_sizes;
    const batch_layout layout{.length = static_cast<int>(r.seq), .sequences = static_cast<int>(r.batch), .end = end};
    const validation_batches batches(text, layout);
    evaluation out;
    token_batch batch;
    constexpr selection_rule counted = is_causal<M> ? selection_rule::threshold : selection_rule::top;
    const auto pass = [&](selection_rule rule, double& loss, route_report& route) {
        route_observer observer;
        out.tokens = 0;
        for (std::uint64_t i = 0; i < batches.count(); ++i) {
            batches.fill(i, batch);
            out.tokens += batch.targets_count;
            const auto observe = [&](long long layer, const auto& saved) {
                detail::observe_layer(pipeline, observer, batch, layer, saved);
            };
            std::vector<expert_load> loads;
            std::vector<depth_mass> masses;
            if constexpr (is_causal<M>) {
                loss += pipeline.evaluate(view_of(batch), rule, observe, &loads, &masses);
            } else {
                loss += pipeline.evaluate_non_causal(view_of(batch), observe, &loads, &masses);
            }
            observer.end_batch();
            if (rule != counted) continue;
            detail::add_loads(out.experts, loads);
            detail::add_masses(out.depth, masses);
        }
        loss /= static_cast<double>(out.tokens);
        route = observer.report();
    };
    if constexpr (is_causal<M>) {
        pass(selection_rule::threshold, out.causal, out.causal_route);
    } else {
        out.causal = std::numeric_limits<double>::quiet_NaN();
    }
    if (is_causal<M> && sparse_layers<M> == 0) {
        out.top = out.causal;
    } else {
        pass(selection_rule::top, out.top, out.top_route);
    }
    return out;
}

/// Trains a pipeline on a text.
template <class Pipeline>
class trainer {
    using M = typename Pipeline::model;
    static constexpr Run run_sizes = Pipeline::run_sizes;

  public:
    /// @param text     training text
    /// @param held_out text of the evaluations
    trainer(Pipeline& pipeline, corpus text, corpus held_out, const training_settings& settings)
        : pipeline_(pipeline),
          files_(pipeline),
          held_out_(std::move(held_out)),
          settings_(settings),
          batches_(std::move(text), layout(settings), settings.seed) {
        Pipeline::require_moments(settings.kind);
        check_vocabulary(batches_.text(), "training");
        check_vocabulary(held_out_, "held-out");
        at_ = training_state{.step = 0,
                             .steps = settings.steps,
                             .seed = settings.seed,
                             .sequences = static_cast<long long>(batches_.layout().sequences_per_step()),
                             .tokens = batches_.text().size(),
                             .kind = settings.kind,
                             .rate = settings.rate,
                             .warmup = settings.warmup};
    }

    /// Starts from first values.
    void start() { pipeline_.initialise(settings_.seed); }

    /// Goes on from a training file. Throws sdepth::error if it was saved by a run with other settings.
    void resume(const std::filesystem::path& path) {
        const training_state stored = files_.load_training(path);
        training_state own = at_;
        own.step = stored.step;
        if (!(stored == own)) throw error(path.string() + ": " + difference(stored, own));
        at_ = stored;
    }

    const training_state& state() const { return at_; }
    const training_batches& batches() const { return batches_; }

    /// Runs to the last step, or until `stop` is set: then the step is finished and the run saved.
    /// @param report    called with `progress` after each step whose losses are read
    /// @param evaluated called after each evaluation with the step and `evaluation`
    template <class Report, class Evaluated>
    void run(const std::atomic<bool>& stop, Report report, Evaluated evaluated) {
        std::optional<json_log> log;
        if (!settings_.log.empty()) log.emplace(settings_.log, static_cast<std::uint64_t>(at_.step));
        const auto begin = std::chrono::steady_clock::now();
        const long long first = at_.step;
        while (at_.step < at_.steps && !stop.load()) {
            const step_totals totals = step();
            const bool last = at_.step == at_.steps;
            const auto due = [&](long long every) { return last || (every > 0 && at_.step % every == 0); };
            if (due(settings_.log_every) || due(settings_.evaluate_every) || due(settings_.save_every) || stop.load()) {
                const progress now = read_progress(totals, begin, first);
                if (log) write(*log, now);
                report(now);
            }
            if (due(settings_.evaluate_every)) {
                const evaluation result = evaluate(pipeline_, held_out_);
                if (log) write(*log, result);
                evaluated(at_.step, result);
            }
            if (due(settings_.save_every)) save();
        }
        if (at_.step < at_.steps) save();
    }

    /// Saves the training file, if the settings name one.
    void save() {
        if (!settings_.checkpoint.empty()) files_.save_training(settings_.checkpoint, at_);
    }

  private:
    static batch_layout layout(const training_settings& settings) {
        const long long sequences = settings.sequences == 0 ? run_sizes.batch : settings.sequences;
        if (sequences < 1 || sequences % run_sizes.batch != 0) {
            throw error("a step of " + std::to_string(sequences) + " sequences is no multiple of the micro-batch of " +
                        std::to_string(run_sizes.batch) + "; change the batch");
        }
        if (settings.steps < 1) throw error("a run needs at least one step");
        return {.length = static_cast<int>(run_sizes.seq),
                .sequences = static_cast<int>(run_sizes.batch),
                .micro_batches = static_cast<int>(sequences / run_sizes.batch),
                .end = document_end::next};
    }
    static void check_vocabulary(const corpus& text, const std::string& which) {
        if (text.vocabulary() <= static_cast<std::uint64_t>(M::dims.vocab)) return;
        throw error("the " + which + " text has a vocabulary of " + std::to_string(text.vocabulary()) +
                    ", the model one of " + std::to_string(M::dims.vocab) + "; set Dims::vocab or give other text");
    }
    static std::string difference(const training_state& stored, const training_state& own) {
        const auto says = [](const std::string& what, const auto& a, const auto& b) {
            return "was saved by a run with " + what + " " + a + ", this run has " + b +
                   "; resume with the same settings";
        };
        using std::to_string;
        if (stored.steps != own.steps) return says("steps", to_string(stored.steps), to_string(own.steps));
        if (stored.seed != own.seed) return says("seed", to_string(stored.seed), to_string(own.seed));
        if (stored.sequences != own.sequences) {
            return says("sequences a step", to_string(stored.sequences), to_string(own.sequences));
        }
        if (stored.tokens != own.tokens) return says("text tokens", to_string(stored.tokens), to_string(own.tokens));
        if (stored.rate != own.rate) return says("learning rate", to_string(stored.rate), to_string(own.rate));
        if (stored.warmup != own.warmup) return says("warm-up", to_string(stored.warmup), to_string(own.warmup));
        return says("optimiser", std::string(stored.kind == optimiser::muon ? "muon" : "adamw"),
                    std::string(own.kind == optimiser::muon ? "muon" : "adamw"));
    }

    step_totals step() {
        const int micro_batches = batches_.layout().micro_batches;
        micro_.resize(static_cast<std::size_t>(micro_batches));
        step_totals totals;
        for (int m = 0; m < micro_batches; ++m) {
            token_batch& batch = micro_[static_cast<std::size_t>(m)];
            batches_.fill(static_cast<std::uint64_t>(at_.step), m, batch);
            totals.targets += batch.targets_count;
            for (const int live : batch.live) totals.rows += live;
        }
        if (totals.targets == 0) throw error("step " + std::to_string(at_.step + 1) + ": no token has a target");
        for (int m = 0; m < micro_batches; ++m) {
            const token_batch& batch = micro_[static_cast<std::size_t>(m)];
            batch_view view = view_of(batch);
            view.seed = settings_.seed;
            view.first = static_cast<std::uint64_t>((at_.step * micro_batches + m) * run_sizes.batch * run_sizes.seq);
            pipeline_.accumulate(view, totals);
        }

        pipeline_.advance({.kind = settings_.kind,
                           .rate = schedule().at(at_.step),
                           .decay = settings_.decay,
                           .clip = settings_.clip,
                           .step = at_.step + 1});
        ++at_.step;
        return totals;
    }
    cosine_schedule schedule() const {
        return {.peak = settings_.rate, .warmup_share = settings_.warmup, .steps = at_.steps};
    }

    progress read_progress(const step_totals& totals, std::chrono::steady_clock::time_point begin, long long first) {
        progress now{.step = at_.step, .losses = pipeline_.last_losses(totals), .rate = schedule().at(at_.step - 1)};
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
        const auto done = static_cast<double>(at_.step - first);
        now.tokens_per_second = done * static_cast<double>(batches_.layout().tokens_per_step()) / spent.count();
        now.seconds_left = spent.count() / done * static_cast<double>(at_.steps - at_.step);
        return now;
    }

    static void write(json_log& log, const progress& now) {
        std::vector<json_log::member> line{{"step", now.step - 1},
                                           {"loss", now.losses.language},
                                           {"route_loss", now.losses.routing},
                                           {"gradient_norm", now.losses.gradient_norm},
                                           {"learning_rate", now.rate},
                                           {"tokens_per_second", now.tokens_per_second}};
        if (!now.losses.experts.empty()) {
            line.emplace_back("balance_loss", now.losses.balance);
            line.emplace_back("z_loss", now.losses.router_z);
            detail::append_loads(line, now.losses.experts);
        }
        log.write(line);
    }
    void write(json_log& log, const evaluation& result) const {
        const route_report& causal = result.causal_route;
        constexpr independent_routing reference = independent_reference<M>();
        std::vector<json_log::member> line{
            {"step", at_.step - 1},
            {"causal_loss", result.causal},
            {"top_loss", result.top},
            {"gap", result.gap()},
            {"held_out_tokens", result.tokens},
            {"agreement", result.top_route.agreement},
            {"chosen_disagreement", disagreement_among_chosen(result.top_route.agreement, reference.sparsity)},
            {"rate", causal.rate},
            {"coverage", causal.coverage},
            {"coverage_if_independent", reference.coverage()},
            {"jaccard", causal.jaccard},
            {"jaccard_if_independent", reference.jaccard()},
            {"updates", std::span<const double>(causal.updates)},
            {"rate_of_layer", std::span<const double>(causal.rate_of_layer)}};
        detail::append_loads(line, result.experts);
        detail::append_masses(line, result.depth);
        log.write(line);
    }

    Pipeline& pipeline_;
    checkpoint<Pipeline> files_;
    corpus held_out_;
    training_settings settings_;
    training_batches batches_;
    training_state at_;
    std::vector<token_batch> micro_;
};

}  // namespace sdepth::inline v0
