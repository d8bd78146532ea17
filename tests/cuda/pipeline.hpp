// SPDX-License-Identifier: MIT
// Four small models, one of each kind of the dense and sparse-depth family, and what a short training run of one shows:
// the same code on every backend.
#pragma once

#include <cstdint>
#include <filesystem>
#include <vector>

#include "sdepth/checkpoint.hpp"
#include "sdepth/pipeline.hpp"
#include "sdepth/random.hpp"
#include "sdepth/sdepth.hpp"

namespace sdepth_test {

// Rows near the cut change sides by the rounding of bfloat16, and a row that did changes what later routers see: a
// host<float> that rounds what the GPU stores agrees with a plain one on .996 of the rows of x_mod's third sparse layer
// (.989 behind a second block, .94 at three times the rate and half the sparsity, where AdamW turns noise into steps).
namespace small {

using namespace sdepth;
using namespace sdepth::literals;

inline constexpr Dims sizes{.width = 128, .head_dim = 64, .heads = 4, .kv_heads = 2, .ffn = 320, .vocab = 203};
inline constexpr Run run{.seq = 200, .batch = 3, .max_documents = 4};

inline constexpr auto dense_formula = dense * 3_c;
inline constexpr auto mod_formula = (mod<8> + dense) * 2_c;
inline constexpr auto x_mod_formula = dense + (sparse<8> * 3_c + dense);
inline constexpr auto routed_ffn_formula = (attention_only + sparse<8>(ffn_only) * 4_c) * 2_c + dense;

using Dense3 = Model<dense_formula, sizes>;
using MoD = Model<mod_formula, sizes>;
using XMoD = Model<x_mod_formula, sizes>;
using RoutedFfn = Model<routed_ffn_formula, sizes>;

}  // namespace small

enum class small_model { dense, mod, x_mod, routed_ffn };

/// What a run does.
struct small_run {
    int steps = 20;
    int first = 0;  // steps done before, by the run whose file is loaded
    bool graphs = true;
    bool documents = false;  // several documents a sequence, and padding
    double rate = 1e-4;
    sdepth::optimiser kind = sdepth::optimiser::adamw;
    sdepth::recompute replay = sdepth::recompute::none;
    std::filesystem::path load{}, save{};  // training files; empty: none
    int evaluations = 3;                   // under each rule; the third is a replay
    bool marked = false;                   // x_mod on the GPU only: see marked_cuda
};

/// What it shows.
struct small_result {
    std::vector<double> losses, norms;                  // of each step
    std::vector<std::vector<std::vector<bool>>> masks;  // [step][sparse layer][row]
    double top = 0, threshold = 0;                      // of a held-out batch at the end, nats a target
    long long planned = 0, taken = 0;                   // bytes
};

/// One micro-batch of step `step`: a walk over the tokens that mostly goes on as it did, so that there is something to
/// learn.
class small_batch {
  public:
    small_batch(int step, bool documents) {
        using namespace small;
        const auto at = static_cast<std::uint64_t>(step);
        for (long long b = 0; b < run.batch; ++b) {
            int token = static_cast<int>(7 * b + 13 * step) % 203, document = 0;
            const int live = documents ? static_cast<int>(run.seq - 40 * b) : static_cast<int>(run.seq);
            live_.push_back(live);
            for (int i = 0; i < run.seq; ++i) {
                const auto element = static_cast<std::uint64_t>(b * run.seq + i);
                const double u = sdepth::random_uniform(at + 1, sdepth::random_use::check, 1, element);
                const int next = u < .75 ? (3 * token + 1) % 203 : static_cast<int>(u * 1e6) % 203;
                if (documents && i > 0 && i % 70 == 0) ++document;
                tokens_.push_back(i < live ? token : 0);
                const bool counts = i < live && !(documents && i % 70 == 69);
                targets_.push_back(counts ? next : -1);
                documents_.push_back(document);
                token = next;
                totals_.targets += counts ? 1 : 0;
                totals_.rows += i < live ? 1 : 0;
            }
        }
        if (!documents) documents_.clear(), live_.clear();
    }
    sdepth::batch_view view() const {
        return {tokens_.data(), targets_.data(), documents_.empty() ? nullptr : documents_.data(),
                live_.empty() ? nullptr : live_.data()};
    }
    const sdepth::step_totals& totals() const { return totals_; }

  private:
    std::vector<int> tokens_, targets_, documents_, live_;
    sdepth::step_totals totals_;
};

template <class M, class B, sdepth::Run R>
small_result run_small(B& backend, const small_run& what) {
    using namespace sdepth;
    small_result out;
    pipeline<M, B, R> model(backend);
    checkpoint file(model);
    if (what.load.empty())
        model.initialise(5);
    else
        file.load_training(what.load);
    for (int step = what.first; step < what.first + what.steps; ++step) {
        const small_batch batch(step, what.documents);
        model.accumulate(batch.view(), batch.totals());
        auto& masks = out.masks.emplace_back();
        model.for_each_routed_layer([&](long long, const auto& saved, int capacity) {
            std::vector<int> ids(static_cast<std::size_t>(R.batch * capacity)), live(static_cast<std::size_t>(R.batch));
            read(backend, live.data(), saved.live, R.batch);
            for (int b = 0; b < R.batch; ++b)  // what is beyond was never written
                read(backend, ids.data() + b * capacity, saved.ids + b * capacity, live[static_cast<std::size_t>(b)]);
            auto& mask = masks.emplace_back(static_cast<std::size_t>(R.batch * R.seq), false);
            for (int b = 0; b < R.batch; ++b)
                for (int j = 0; j < live[static_cast<std::size_t>(b)]; ++j)
                    mask[static_cast<std::size_t>(b * R.seq + ids[static_cast<std::size_t>(b * capacity + j)])] = true;
        });
        const step_losses losses =
            model.update({.kind = what.kind, .rate = what.rate, .step = step + 1}, batch.totals());
        out.losses.push_back(losses.total());
        out.norms.push_back(losses.gradient_norm);
    }
    const small_batch held_out(1000, what.documents);
    const auto targets = static_cast<double>(held_out.totals().targets);
    const auto evaluated = [&](selection_rule rule) {
        double loss = 0;
        for (int i = 0; i < what.evaluations; ++i) loss = model.evaluate(held_out.view(), rule);
        return loss / targets;
    };
    out.top = evaluated(selection_rule::top);
    out.threshold = evaluated(selection_rule::threshold);
    if (!what.save.empty())
        file.save_training(what.save, {.step = what.first + what.steps, .steps = 100, .seed = 5, .kind = what.kind});
    out.planned = plan<M, B, R>::peak_bytes;
    out.taken = static_cast<long long>(model.bytes());
    return out;
}

/// The run that `what` asks for, of model M.
template <class M, class B>
small_result run_model(B& backend, const small_run& what) {
    constexpr sdepth::Run plain = small::run, selective = [] {
        sdepth::Run r = small::run;
        r.replay = sdepth::recompute::selective;
        return r;
    }();
    constexpr sdepth::Run muon_alone = [] {
        sdepth::Run r = small::run;
        r.moments = sdepth::optimiser::muon;
        return r;
    }();
    // Not every model need be compiled for every memory.
    if constexpr (std::is_same_v<M, small::XMoD>)
        if (what.replay == sdepth::recompute::selective) return run_small<M, B, selective>(backend, what);
    if constexpr (std::is_same_v<M, small::Dense3>)
        if (what.kind == sdepth::optimiser::muon) return run_small<M, B, muon_alone>(backend, what);
    return run_small<M, B, plain>(backend, what);
}
/// f.operator()<M>() of the model M that is named.
template <class F>
small_result with_model(small_model which, const F& f) {
    switch (which) {
        case small_model::dense:
            return f.template operator()<small::Dense3>();
        case small_model::mod:
            return f.template operator()<small::MoD>();
        case small_model::x_mod:
            return f.template operator()<small::XMoD>();
        default:
            return f.template operator()<small::RoutedFfn>();
    }
}

/// A translation unit for each model or two, see pipeline_on_cuda.cuh: all together take nvcc longer than a minute.
template <class M>
small_result run_model_on_cuda(const small_run& what);
inline small_result run_on_cuda(small_model which, const small_run& what) {
    return with_model(which, [&]<class M>() { return run_model_on_cuda<M>(what); });
}

}  // namespace sdepth_test
