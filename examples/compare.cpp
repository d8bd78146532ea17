// SPDX-License-Identifier: MIT
// Trains Dense, MoD, X-MoD and X-MoD's ablations under one budget and prints the table of held-out losses.
//
// Equal FLOPs: every model gets the `useful` training FLOPs of Dense at --steps, so cheaper models see more tokens,
// which the column D/D_D states; equal tokens and equal time are the other two readings of "fair".
#include <CLI/CLI.hpp>
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "common/console.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "sdepth/sdepth.hpp"
#include "sdepth/trainer.hpp"

namespace {

using namespace sdepth;
using namespace sdepth::literals;

// Four active layers each; `no_anchors` clears its bias every four layers instead.
constexpr sparse_policy ungated{.gate = gate_form::none, .scale = false};
constexpr auto dense4 = dense * 4_c;
constexpr auto mod4 = dense + (mod<4> * 2_c + dense) * 2_c;
constexpr auto x_mod = dense * 2_c + (sparse<4> * 4_c + dense);
constexpr auto no_gate = dense * 2_c + (sparse<4, ungated> * 4_c + dense);
constexpr auto no_bias = dense * 2_c + (sparse<4, sparse_policy{.bias = false}> * 4_c + dense);
constexpr auto no_prefix = (sparse<4> * 4_c + dense) * 2_c;
constexpr auto no_anchors = dense * 2_c + sparse<4, sparse_policy{.clear_every = 4}> * 8_c;
constexpr auto printed_rule = dense * 2_c + (sparse<4, printed_policy> * 4_c + dense);

constexpr Dims sizes{.width = 128, .head_dim = 32, .heads = 4, .kv_heads = 2, .ffn = 384, .vocab = 256};
constexpr Run run_sizes{.seq = 128, .batch = 8};
using Reference = Model<dense4, sizes>;

enum class budget { flops, tokens, time };

struct request {
    long long steps = 300;  // of Dense
    budget equal = budget::flops;
    double seconds = 60;
    double rate = 5e-3;
    int threads = 0;
    std::vector<std::uint64_t> seeds{1, 2};
};

struct row {
    std::string name;
    long long params = 0;
    double flops_ratio = 0;   // phi / phi_D, useful FLOPs a token
    double tokens_ratio = 0;  // D / D_D
    double tokens_per_second = 0;
    std::vector<double> causal, top;  // by seed

    static double mean(const std::vector<double>& x) {
        double sum = 0;
        for (const double v : x) sum += v;
        return sum / static_cast<double>(x.size());
    }
    double spread() const {
        return *std::max_element(causal.begin(), causal.end()) - *std::min_element(causal.begin(), causal.end());
    }
};

// Steps that use up `seconds`, from the time of a few.
template <class Pipeline>
long long steps_in(double seconds, Pipeline& model, const corpus& text, const request& r) {
    training_settings settings{.steps = 5, .kind = optimiser::muon, .rate = r.rate};
    trainer trial(model, text, text, settings);
    trial.start();
    double speed = 1;
    std::atomic<bool> stop{false};
    trial.run(
        stop,
        [&](const progress& now) {
            speed = now.tokens_per_second;
            stop = now.step == 4;  // before the evaluation that ends a run
        },
        [](auto&&...) {});
    const auto tokens = static_cast<double>(run_sizes.batch * run_sizes.seq);
    return std::max(1LL, static_cast<long long>(seconds * speed / tokens));
}

template <class M>
row measure(const std::string& name, const corpus_split& text, const request& r) {
    constexpr double per_token = flops<M, run_sizes>.useful.per_token().value();
    constexpr double reference = flops<Reference, run_sizes>.useful.per_token().value();
    row out{.name = name, .params = params<M>.total, .flops_ratio = per_token / reference, .causal = {}, .top = {}};
    for (const std::uint64_t seed : r.seeds) {
        host<float> backend(r.threads);
        pipeline<M, host<float>, run_sizes> model(backend);
        training_settings settings{.steps = r.steps, .kind = optimiser::muon, .rate = r.rate, .seed = seed};
        if (r.equal == budget::flops) settings.steps = std::llround(static_cast<double>(r.steps) / out.flops_ratio);
        if (r.equal == budget::time) settings.steps = steps_in(r.seconds, model, text.training, r);
        out.tokens_ratio = static_cast<double>(settings.steps) / static_cast<double>(r.steps);
        trainer training(model, text.training, text.held_out, settings);
        training.start();
        training.run(
            examples::stop_requested(), [&](const progress& now) { out.tokens_per_second = now.tokens_per_second; },
            [&](long long, const evaluation& e) {
                out.causal.push_back(e.causal);
                out.top.push_back(e.top);
            });
        if (examples::stop_requested()) throw error("interrupted; the table needs every run to end");
        std::fprintf(stderr, "%s, seed %llu: %lld steps, causal %.4f, training rule %.4f\n", name.c_str(),
                     static_cast<unsigned long long>(seed), settings.steps, out.causal.back(), out.top.back());
    }
    return out;
}

// A difference to Dense that is not larger than both spreads together decides nothing.
std::string verdict_of(const row& x, const row& reference) {
    const double difference = row::mean(x.causal) - row::mean(reference.causal);
    if (&x == &reference) return "";
    if (x.causal.size() < 2) return "one seed";
    if (std::abs(difference) <= x.spread() + reference.spread()) return "undecided";
    return difference < 0 ? "better" : "worse";
}

}  // namespace

int main(int argc, char** argv) try {
    std::string data, held_out;
    request r;
    int seeds = 2;
    CLI::App app("Trains several models under one budget and compares their held-out losses.");
    app.add_option("--data", data, "text file or folder")->required();
    app.add_option("--held-out", held_out, "text of the evaluations")->required();
    app.add_option("--steps", r.steps, "optimiser steps of Dense")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--equal", r.equal, "flops, tokens or time")
        ->transform(CLI::CheckedTransformer(std::map<std::string, budget>{
            {"flops", budget::flops}, {"tokens", budget::tokens}, {"time", budget::time}}));
    app.add_option("--seconds", r.seconds, "of training, with --equal time")
        ->check(CLI::PositiveNumber)
        ->capture_default_str();
    app.add_option("--rate", r.rate, "peak learning rate")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--seeds", seeds, "runs of each model")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--threads", r.threads, "0 = one a core")->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    examples::stop_on_interrupt();
    r.seeds.clear();
    for (int i = 1; i <= seeds; ++i) r.seeds.push_back(static_cast<std::uint64_t>(i));

    const corpus_split text{corpus::open(data), corpus::open(held_out)};
    const std::vector<row> rows{measure<Reference>("Dense", text, r),
                                measure<Model<mod4, sizes>>("MoD", text, r),
                                measure<Model<x_mod, sizes>>("X-MoD A1K4", text, r),
                                measure<Model<printed_rule, sizes>>("  printed threshold", text, r),
                                measure<Model<no_gate, sizes>>("  no gate or scale", text, r),
                                measure<Model<no_bias, sizes>>("  no bias", text, r),
                                measure<Model<no_prefix, sizes>>("  no prefix", text, r),
                                measure<Model<no_anchors, sizes>>("  no anchors", text, r)};

    std::printf("%-20s %9s %8s %6s %8s  %-16s %-8s %-9s %s\n", "model", "params", "phi/phiD", "D/D_D", "tok/s",
                "causal (spread)", "top", "to Dense", "");
    for (const row& x : rows) {
        std::printf("%-20s %9lld %8.3f %6.3f %8.0f  %.4f (%.4f)  %.4f  %+.4f   %s\n", x.name.c_str(), x.params,
                    x.flops_ratio, x.tokens_ratio, x.tokens_per_second, row::mean(x.causal), x.spread(),
                    row::mean(x.top), row::mean(x.causal) - row::mean(rows[0].causal), verdict_of(x, rows[0]).c_str());
    }
} catch (const error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
