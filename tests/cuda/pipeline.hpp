// SPDX-License-Identifier: MIT
// Five small models, one of each kind of the dense, sparse-depth and depth-attention families, and what a short
// training run of one shows: the same code on every backend.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
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
inline constexpr Run one_sequence{.seq = 600, .max_documents = 4};
inline constexpr Run tiny{.seq = 40, .batch = 2, .max_documents = 4};  // for the sanitizers, which are slow

inline constexpr auto dense_formula = dense * 3_c;
inline constexpr auto mod_formula = (mod<8> + dense) * 2_c;
inline constexpr auto x_mod_formula = dense + (sparse<8> * 3_c + dense);
inline constexpr auto moda_formula =
    moda + sparse<8>(moda_with<moda_policy{.slots = 3, .choice = slot_choice::mixed}>) * 2_c +
    moda_with<moda_policy{.attention = attention_slot::projected, .joint = false}> + moda_last;
inline constexpr auto routed_ffn_formula = (attention_only + sparse<8>(ffn_only) * 4_c) * 2_c + dense;

using Dense3 = Model<dense_formula, sizes>;
using MoD = Model<mod_formula, sizes>;
using XMoD = Model<x_mod_formula, sizes>;
using RoutedFfn = Model<routed_ffn_formula, sizes>;
using MoDA = Model<moda_formula, sizes>;

template <class M>
inline constexpr Run run_of = run;
template <>
inline constexpr Run run_of<RoutedFfn> = one_sequence;

}  // namespace small

enum class small_model { dense, mod, x_mod, routed_ffn, moda };

/// What a run does.
struct small_run {
    int steps = 20;
    int first = 0;  // steps done before, by the run whose file is loaded
    int micro_batches = 1;
    bool graphs = true;
    bool documents = false;  // several documents a sequence, and padding
    double rate = 1e-4;
    sdepth::optimiser kind = sdepth::optimiser::adamw;
    sdepth::recompute replay = sdepth::recompute::none;
    std::filesystem::path load{}, save{};  // training files; empty: none
    int evaluations = 3;                   // under each rule; the third is a replay
    bool shifted = false;                  // and more, see small_result
    bool marked = false;                   // x_mod and moda on the GPU only: see marked_cuda
};

/// What it shows.
struct small_result {
    std::vector<double> losses, norms;                  // of each step
    std::vector<std::vector<std::vector<bool>>> masks;  // [step][sparse layer][row of the last micro-batch]
    double top = 0, threshold = 0;                      // of a held-out batch at the end, nats a target
    std::vector<double> shifted_losses, shifted_rates;  // the second again, cuts moved by each of cut_shifts in turn
    std::vector<double> shares;                         // of attention that went to slots there, then with even logits
    long long planned = 0, taken = 0;                   // bytes
};

/// Far above every logit: a causal rule chooses no row; far below: all. The second evaluation is recorded, the others
/// are replays that execute more or fewer rows.
inline constexpr double cut_shifts[] = {0, 0, 1e4, .01, -1e4, -.01, 0};

/// One micro-batch of step `step` in `run`: a walk over the tokens that mostly goes on as it did, so that there is
/// something to learn.
class small_batch {
  public:
    small_batch(const sdepth::Run& run, int step, bool documents) {
        const auto at = static_cast<std::uint64_t>(step);
        for (long long b = 0; b < run.batch; ++b) {
            int token = static_cast<int>(7 * b + 13 * step) % 203, document = 0;
            const int length = static_cast<int>(run.seq), document_rows = length * 7 / 20;
            const int live = documents ? length - length / 5 * static_cast<int>(b) : length;
            live_.push_back(live);
            for (int i = 0; i < run.seq; ++i) {
                const auto element = static_cast<std::uint64_t>(b * run.seq + i);
                const double u = sdepth::random_uniform(at + 1, sdepth::random_use::check, 1, element);
                const int next = u < .75 ? (3 * token + 1) % 203 : static_cast<int>(u * 1e6) % 203;
                if (documents && i > 0 && i % document_rows == 0) ++document;
                tokens_.push_back(i < live ? token : 0);
                const bool counts = i < live && !(documents && (i + 1) % document_rows == 0);
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

/// See small_result.
template <class Pipeline>
void evaluate_shifted(Pipeline& model, const small_batch& batch, small_result& out) {
    using namespace sdepth;
    constexpr Run r = Pipeline::run_sizes;
    std::vector<float> cuts;
    for (const double shift : cut_shifts) {
        std::size_t cut = 0;
        for_each_file_tensor<typename Pipeline::model>([&](const file_tensor& t) {
            if (t.name.find("router.cut") == std::string::npos) return;
            float* const at = model.parameters().master + t.offset;
            if (cut == cuts.size()) read(model.backend(), &cuts.emplace_back(), at, 1);
            const float moved = cuts[cut++] + static_cast<float>(shift);
            write(model.backend(), at, &moved, 1);
        });
        double chosen = 0, all = 0;
        const double loss = model.evaluate(batch.view(), selection_rule::threshold, [&](long long, const auto& record) {
            std::vector<int> live(static_cast<std::size_t>(r.batch));
            read(model.backend(), live.data(), record.live, r.batch);
            for (const int n : live) chosen += n;
            all += static_cast<double>(r.batch * r.seq);
        });
        out.shifted_losses.push_back(loss / static_cast<double>(batch.totals().targets));
        out.shifted_rates.push_back(chosen / all);
    }
}

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
        std::vector<small_batch> batches;
        step_totals totals;
        for (int m = 0; m < what.micro_batches; ++m) {
            const small_batch& batch = batches.emplace_back(R, step + 100 * m, what.documents);
            totals.targets += batch.totals().targets;
            totals.rows += batch.totals().rows;
        }
        for (const small_batch& batch : batches) model.accumulate(batch.view(), totals);
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
        const step_losses losses = model.update({.kind = what.kind, .rate = what.rate, .step = step + 1}, totals);
        out.losses.push_back(losses.total());
        out.norms.push_back(losses.gradient_norm);
    }
    const small_batch held_out(R, 1000, what.documents);
    const auto targets = static_cast<double>(held_out.totals().targets);
    const auto evaluated = [&](selection_rule rule) {
        double loss = 0;
        std::vector<depth_mass> masses;
        for (int i = 0; i < what.evaluations; ++i)
            loss = model.evaluate(held_out.view(), rule, unobserved{}, nullptr, &masses);
        if (rule == selection_rule::threshold) return loss / targets;  // a row that changes sides moves shares by more
        for (const depth_mass& mass : masses)
            out.shares.push_back(mass.share()), out.shares.push_back(mass.share_if_even());
        return loss / targets;
    };
    out.top = evaluated(selection_rule::top);
    out.threshold = evaluated(selection_rule::threshold);
    if (what.shifted) evaluate_shifted(model, held_out, out);
    if (!what.save.empty())
        file.save_training(what.save, {.step = what.first + what.steps, .steps = 100, .seed = 5, .kind = what.kind});
    out.planned = plan<M, B, R>::peak_bytes;
    out.taken = static_cast<long long>(model.bytes());
    return out;
}

/// The run that `what` asks for, of model M.
template <class M, class B>
small_result run_model(B& backend, const small_run& what) {
    constexpr sdepth::Run plain = small::run_of<M>, selective = [] {
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
        case small_model::moda:
            return f.template operator()<small::MoDA>();
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
