// SPDX-License-Identifier: MIT
// Trains one of five models of twelve active layers and evaluates it under both selection rules: what the tracked cut
// is for (docs/performance/selection_rules.md).
//   selection_rules dense|tracked|balanced|full|half --data TEXT --held-out TEXT [flags of examples/train]
#pragma once

#include <string_view>

#include "common/console.hpp"
#include "common/train_options.hpp"
#include "sdepth/sdepth.hpp"
#include "sdepth/trainer.hpp"

namespace selection_rules {

using namespace sdepth;
using namespace sdepth::literals;

// A1K4: two dense layers, then blocks of four layers that each take a quarter of the rows, and an anchor.
constexpr auto all_dense = dense * 12_c;
constexpr auto tracked = dense * 2_c + (sparse<4> * 4_c + dense) * 5_c;
// Routers that move slowly beside a bias that outweighs their logits: every token is visited once in a block.
constexpr auto balanced = dense * 2_c + (sparse<4, sparse_policy{.tau = 16, .router_rate = 0.02}> * 4_c + dense) * 5_c;
// The same with keys and values of every row.
constexpr auto full =
    dense * 2_c +
    (sparse<4, sparse_policy{.tau = 16, .keys = key_scope::full, .router_rate = 0.02}> * 4_c + dense) * 5_c;
constexpr auto half = dense * 2_c + (sparse<4, sparse_policy{.cut = threshold::half}> * 4_c + dense) * 5_c;

template <class M, Run micro_batch, class Backend>
void train(Backend& backend, const examples::train_options& options) {
    pipeline<M, Backend, micro_batch> model(backend);
    examples::print_model<decltype(model)>();
    trainer training(model, corpus::open(options.data), corpus::open(options.held_out), options.run);
    options.resume ? training.resume(options.run.checkpoint) : training.start();
    constexpr double useful = flops<M, micro_batch>.useful.per_token().value();
    const double peak = examples::measured_peak(backend);
    training.run(
        examples::stop_requested(),
        [&](const progress& now) {
            if (now.step % options.print_every == 0) {
                examples::print_progress(now, options.run.steps, useful, peak);
            }
        },
        [](long long step, const evaluation& e) { examples::print_evaluation<M>(step, e); });
}

/// @param make  returns a backend for a number of threads
template <Dims sizes, Run micro_batch, class Make>
int run(int argc, char** argv, examples::train_options defaults, Make make) try {
    const std::string_view model = argc > 1 ? argv[1] : "";
    const auto options = examples::read_train_options(argc - 1, argv + 1, defaults);
    examples::stop_on_interrupt();
    if (options.held_out.empty()) throw error("without --held-out there is nothing to compare: name a text");
    auto backend = make(options.threads);
    if (model == "dense") {
        train<Model<all_dense, sizes>, micro_batch>(backend, options);
    } else if (model == "tracked") {
        train<Model<tracked, sizes>, micro_batch>(backend, options);
    } else if (model == "balanced") {
        train<Model<balanced, sizes>, micro_batch>(backend, options);
    } else if (model == "full") {
        train<Model<full, sizes>, micro_batch>(backend, options);
    } else if (model == "half") {
        train<Model<half, sizes>, micro_batch>(backend, options);
    } else {
        throw error("'" + std::string(model) + "' is no model here: give dense, tracked, balanced, full or half");
    }
    return 0;
} catch (const error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}

}  // namespace selection_rules
