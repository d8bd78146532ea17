// SPDX-License-Identifier: MIT
// The training loop: batch, step, log, evaluate, save. It knows pipelines and files, no layer. Rank 7.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "sdepth/checkpoint.hpp"
#include "sdepth/data.hpp"
#include "sdepth/evaluation.hpp"
#include "sdepth/file_lock.hpp"
#include "sdepth/log.hpp"
#include "sdepth/schedule.hpp"
#include "sdepth/training_log.hpp"
#include "sdepth/training_settings.hpp"

namespace sdepth::inline v0 {

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
        if (held_out_.size() < 2)
            throw error("the held-out text has 1 token and so none to predict; give a longer one");
        at_ = training_state{.step = 0,
                             .steps = settings.steps,
                             .seed = settings.seed,
                             .sequences = static_cast<long long>(batches_.layout().sequences_per_step()),
                             .tokens = batches_.text().size(),
                             .kind = settings.kind,
                             .rate = settings.rate,
                             .warmup = settings.warmup,
                             .decay = settings.decay,
                             .clip = settings.clip,
                             .length = run_sizes.seq,
                             .text = batches_.text().digest()};
    }

    /// Starts from first values.
    void start() { pipeline_.initialise(settings_.seed); }

    /// Goes on from a training file. Throws sdepth::error, having changed nothing, if it was saved by a run with other
    /// settings or on another text.
    void resume(const std::filesystem::path& path) {
        training_state own = at_;
        const training_state stored = files_.load_training(path, [&](training_state saved) {
            if (settings_.change_rate) saved.rate = own.rate;
            const std::string differs = detail::difference(saved, own);
            if (!differs.empty()) throw error(path.string() + ": " + differs);
        });
        at_.step = stored.step;
        own_file_ = path;
    }

    const training_state& state() const { return at_; }
    /// Where the run of the file that was resumed and this one differ all the same: storage types, micro-batch, losses.
    const std::vector<std::string>& differences() const { return files_.differences(); }
    const training_batches& batches() const { return batches_; }

    /// Runs to the last step, or until `stop` is set: then the step is finished and the run saved; an evaluation ends
    /// unfinished, and a resumed run makes it. Before the first step it is tried whether checkpoint and log can be
    /// written; both are locked until the run ends. A step is saved before it is evaluated. After an error the steps
    /// that went well are saved, and the error says where; if a step failed, beside an earlier save: in
    /// `<checkpoint>.last`.
    /// @param report    called with `progress` after each step whose losses are read
    /// @param evaluated called after each evaluation with the step and `evaluation`
    template <class Report, class Evaluated>
    void run(const std::atomic<bool>& stop, Report report, Evaluated evaluated) {
        std::optional<file_lock> checkpoint_lock, log_lock;
        std::optional<json_log> log;
        if (!settings_.checkpoint.empty()) {
            checkpoint_lock.emplace(settings_.checkpoint);
            check_checkpoint();
        }
        if (!settings_.log.empty()) {
            log_lock.emplace(settings_.log);
            log.emplace(settings_.log, static_cast<std::uint64_t>(at_.step));
        }
        saved_ = at_.step;
        try {
            loop(stop, log, report, evaluated);
        } catch (const error& problem) {
            throw error(problem.what() + rescue());
        } catch (...) {
            rescue();
            throw;
        }
    }

    /// Saves the training file, if the settings name one.
    void save() { save(settings_.checkpoint); }

  private:
    static batch_layout layout(const training_settings& settings) {
        detail::check_settings(settings, run_sizes.batch, run_sizes.seq);
        const long long sequences = settings.sequences == 0 ? run_sizes.batch : settings.sequences;
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
    template <class Report, class Evaluated>
    void loop(const std::atomic<bool>& stop, std::optional<json_log>& log, Report& report, Evaluated& evaluated) {
        const auto due = [&](long long every) { return at_.step == at_.steps || (every > 0 && at_.step % every == 0); };
        const auto evaluate_now = [&] {
            const std::optional<evaluation> result = evaluate_unless(stop, pipeline_, held_out_);
            if (!result) return;
            if (log) detail::write_line<M>(*log, at_.step, *result);
            evaluated(at_.step, *result);
        };
        // A run may have ended between a save and its evaluation.
        const bool logged = log && log->last_step_has("held_out_tokens");
        if (at_.step > 0 && due(settings_.evaluate_every) && !logged) evaluate_now();

        const auto begin = std::chrono::steady_clock::now();
        const long long first = at_.step;
        while (at_.step < at_.steps && !stop.load()) {
            stepping_ = true;
            const step_totals totals = step();
            if (due(settings_.log_every) || due(settings_.evaluate_every) || due(settings_.save_every) || stop.load()) {
                const progress now = read_progress(totals, begin, first);
                stepping_ = false;
                if (log) detail::write_line(*log, now);
                report(now);
                if (due(settings_.save_every) || stop.load()) save();
                if (due(settings_.evaluate_every)) evaluate_now();
            }
        }
        if (at_.step != saved_) save();  // stopped while it evaluated
    }

    // Tried before the first step, for hours may lie between it and the first save.
    void check_checkpoint() {
        const std::filesystem::path& path = settings_.checkpoint;
        checkpoint<Pipeline>::try_training(path, settings_.kind);
        std::error_code ignored;
        if (settings_.overwrite || !std::filesystem::exists(path, ignored)) return;
        if (own_file_.empty() || !same_file(own_file_, path))
            throw error(
                path.string() +
                ": holds another run; resume it, name another file, or say that it may be replaced (overwrite)");
    }

    void save(const std::filesystem::path& path) {
        if (settings_.checkpoint.empty()) return;
        count_good_steps();
        files_.save_training(path, at_);
        saved_ = at_.step;
        if (path == settings_.checkpoint) own_file_ = path;
    }

    // Saves what is newer than the file, and says so.
    std::string rescue() {
        std::filesystem::path path = settings_.checkpoint;
        try {
            count_good_steps();
            if (path.empty() || at_.step == saved_) return "";
            // A run that diverges may have been bad for some steps: an earlier save stays.
            if (stepping_ && saved_ > 0) path += ".last";
            save(path);
            return "; the run up to step " + std::to_string(at_.step) + " is saved in " + path.string();
        } catch (const std::exception& problem) {
            return "; and the run could not be saved: " + std::string(problem.what());
        }
    }
    // From the first step on that was not finite no weight changes.
    void count_good_steps() {
        if (const long long bad = pipeline_.bad_step(); bad > 0) at_.step = bad - 1;
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
        count_good_steps();
        progress now{.step = at_.step, .losses = pipeline_.last_losses(totals), .rate = schedule().at(at_.step - 1)};
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
        const auto done = static_cast<double>(at_.step - first);
        now.tokens_per_second = done * static_cast<double>(batches_.layout().tokens_per_step()) / spent.count();
        now.seconds_left = spent.count() / done * static_cast<double>(at_.steps - at_.step);
        return now;
    }

    Pipeline& pipeline_;
    checkpoint<Pipeline> files_;
    corpus held_out_;
    training_settings settings_;
    training_batches batches_;
    training_state at_;
    std::filesystem::path own_file_;  // the training file that this run wrote or came from
    long long saved_ = 0;             // step of the last save
    bool stepping_ = false;           // inside a step, until its losses are known
    std::vector<token_batch> micro_;
};

}  // namespace sdepth::inline v0
