// SPDX-License-Identifier: MIT
// Trains one model under a budget, over several seeds, and sets the held-out losses of several side by side.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "common/console.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "sdepth/sdepth.hpp"
#include "sdepth/trainer.hpp"

namespace examples {

enum class budget { flops, tokens, time };

struct comparison_request {
    long long steps = 300;  ///< of the reference
    budget equal = budget::flops;
    double seconds = 60;  ///< of training, at equal time
    double rate = 5e-3;
    int threads = 0;
    std::vector<std::uint64_t> seeds{1, 2};
};

/// What the runs of one model gave.
struct compared_model {
    std::string name;
    long long params = 0;
    double flops_ratio = 0;  ///< phi / phi_D, useful FLOPs a token
    double tokens_per_second = 0;
    std::vector<double> steps;        ///< of each seed
    std::vector<double> causal, top;  ///< held-out loss by seed, under the causal and under the training rule

    static double mean(const std::vector<double>& x) {
        double sum = 0;
        for (const double v : x) sum += v;
        return sum / static_cast<double>(x.size());
    }
    double spread() const {
        return *std::max_element(causal.begin(), causal.end()) - *std::min_element(causal.begin(), causal.end());
    }
    /// D / D_D, means over the seeds.
    double tokens_to(const compared_model& reference) const { return mean(steps) / mean(reference.steps); }
    double difference_to(const compared_model& reference) const { return mean(causal) - mean(reference.causal); }
};

/// Steps that use up `seconds`, from the time of a few.
template <class Pipeline>
long long steps_in(double seconds, Pipeline& model, const sdepth::corpus& text, const comparison_request& r,
                   double tokens_per_step) {
    sdepth::trainer trial(model, text, text, {.steps = 5, .kind = sdepth::optimiser::muon, .rate = r.rate});
    trial.start();
    double speed = 1;
    std::atomic<bool> stop{false};
    trial.run(
        stop,
        [&](const sdepth::progress& now) {
            speed = now.tokens_per_second;
            stop = now.step == 4;  // before the evaluation that ends a run
        },
        [](auto&&...) {});
    return std::max(1LL, static_cast<long long>(seconds * speed / tokens_per_step));
}

/// Trains model M once a seed under the budget that the reference's FLOPs a token (`useful`) set.
template <class M, sdepth::Run R>
compared_model measure(const std::string& name, const sdepth::corpus_split& text, const comparison_request& r,
                       double reference_flops) {
    constexpr double per_token = sdepth::flops<M, R>.useful.per_token().value();
    compared_model out{.name = name,
                       .params = sdepth::params<M>.total,
                       .flops_ratio = per_token / reference_flops,
                       .steps = {},
                       .causal = {},
                       .top = {}};
    for (const std::uint64_t seed : r.seeds) {
        sdepth::host<float> backend(r.threads);
        sdepth::pipeline<M, sdepth::host<float>, R> model(backend);
        sdepth::training_settings settings{
            .steps = r.steps, .kind = sdepth::optimiser::muon, .rate = r.rate, .seed = seed};
        if (r.equal == budget::flops) settings.steps = std::llround(static_cast<double>(r.steps) / out.flops_ratio);
        if (r.equal == budget::time) {
            settings.steps = steps_in(r.seconds, model, text.training, r, static_cast<double>(R.batch * R.seq));
        }
        out.steps.push_back(static_cast<double>(settings.steps));
        sdepth::trainer training(model, text.training, text.held_out, settings);
        training.start();
        training.run(
            stop_requested(), [&](const sdepth::progress& now) { out.tokens_per_second = now.tokens_per_second; },
            [&](long long, const sdepth::evaluation& e) {
                out.causal.push_back(e.causal);
                out.top.push_back(e.top);
            });
        if (stop_requested()) throw sdepth::error("interrupted; the table needs every run to end");
        std::fprintf(stderr, "%s, seed %llu: %lld steps, causal %.4f, training rule %.4f\n", name.c_str(),
                     static_cast<unsigned long long>(seed), settings.steps, out.causal.back(), out.top.back());
    }
    return out;
}

/// A difference to the reference that is not larger than both spreads together decides nothing.
inline std::string verdict_of(const compared_model& x, const compared_model& reference) {
    if (&x == &reference) return "";
    if (x.causal.size() < 2) return "one seed";
    const double difference = x.difference_to(reference);
    if (std::abs(difference) <= x.spread() + reference.spread()) return "undecided";
    return difference < 0 ? "better" : "worse";
}

/// The table; its first row is the reference.
inline void print(const std::vector<compared_model>& rows) {
    std::printf("%-20s %9s %8s %6s %8s %5s  %-16s %-8s %-9s %s\n", "model", "params", "phi/phiD", "D/D_D", "tok/s",
                "seeds", "causal (spread)", "top", "to Dense", "");
    for (const compared_model& x : rows) {
        std::printf("%-20s %9lld %8.3f %6.3f %8.0f %5zu  %.4f (%.4f)  %.4f  %+.4f   %s\n", x.name.c_str(), x.params,
                    x.flops_ratio, x.tokens_to(rows[0]), x.tokens_per_second, x.causal.size(),
                    compared_model::mean(x.causal), x.spread(), compared_model::mean(x.top), x.difference_to(rows[0]),
                    verdict_of(x, rows[0]).c_str());
    }
}

}  // namespace examples
