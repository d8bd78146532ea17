// SPDX-License-Identifier: MIT
// Trains the model of models/small_x_mod.hpp on text, byte by byte, with no GPU.
#include <cstdio>

#include "common/console.hpp"
#include "common/failure.hpp"
#include "common/train_options.hpp"
#include "models/small_x_mod.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "sdepth/trainer.hpp"

using namespace sdepth;
using M = examples::SmallXMoD;
constexpr Run run = examples::small_run;

int main(int argc, char** argv) try {
    examples::train_options defaults;
    defaults.run.steps = 500;
    defaults.run.kind = optimiser::muon;
    defaults.run.rate = 5e-3;
    const auto options = examples::read_train_options(argc, argv, defaults);
    examples::stop_on_interrupt();

    host<float> backend(options.threads);
    pipeline<M, host<float>, run> model(backend);
    examples::print_model<decltype(model)>();
    const double peak = examples::measured_peak(backend);

    const corpus text = corpus::open(options.data);
    const corpus_split parts = options.held_out.empty() ? text.split(options.held_out_share)
                                                        : corpus_split{text, corpus::open(options.held_out)};
    trainer training(model, parts.training, parts.held_out, options.run);
    options.resume ? training.resume(options.run.checkpoint) : training.start();
    examples::print_differences(training.differences());
    if (training.state().step == options.run.steps) std::printf("all %lld steps are done\n", options.run.steps);

    constexpr double useful = flops<M, run>.useful.per_token().value();
    training.run(
        examples::stop_requested(),
        [&](const progress& now) {
            if (now.step == 1 || now.step % options.print_every == 0 || now.step == options.run.steps) {
                examples::print_progress(now, options.run.steps, useful, peak);
            }
        },
        [](long long step, const evaluation& e) { examples::print_evaluation<M>(step, e); });
    examples::print_end(training.state(), options.run.checkpoint);
    return 0;
} catch (const std::exception& e) {
    return examples::failed(e);
}
