// SPDX-License-Identifier: MIT
#include "common/train_options.hpp"

#include <CLI/CLI.hpp>
#include <cstdlib>
#include <map>

namespace examples {

train_options read_train_options(int argc, char** argv, const train_options& defaults) {
    train_options o = defaults;
    CLI::App app("Trains the model whose formula stands at the top of this program's source.");
    app.add_option("--data", o.data, "text file, folder of texts, or .bin token file")->capture_default_str();
    app.add_option("--held-out", o.held_out, "text of the evaluations; without it a share of --data")
        ->capture_default_str();
    app.add_option("--held-out-share", o.held_out_share, "that share")
        ->check(CLI::Range(0.0, 0.9))
        ->capture_default_str();
    app.add_option("--steps", o.run.steps, "optimiser steps")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--batch", o.run.sequences, "sequences of a step, a multiple of the micro-batch; 0 = one")
        ->check(CLI::NonNegativeNumber)
        ->capture_default_str();
    app.add_option("--rate", o.run.rate, "peak learning rate")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--warmup", o.run.warmup, "share of the steps in which the rate rises to its peak")
        ->check(CLI::Range(0.0, 1.0))
        ->capture_default_str();
    const std::map<std::string, sdepth::optimiser> kinds{{"adamw", sdepth::optimiser::adamw},
                                                         {"muon", sdepth::optimiser::muon}};
    app.add_option("--optimiser", o.run.kind, "adamw or muon")->transform(CLI::CheckedTransformer(kinds));
    app.add_option("--seed", o.run.seed, "of first values and data order")->capture_default_str();
    app.add_option("--checkpoint", o.run.checkpoint, "training file to write")->capture_default_str();
    app.add_flag("--resume", o.resume, "go on from --checkpoint");
    app.add_option("--save-every", o.run.save_every, "steps; 0 = at the end")->capture_default_str();
    app.add_option("--evaluate-every", o.run.evaluate_every, "steps; 0 = at the end")->capture_default_str();
    app.add_option("--log", o.run.log, "JSON Lines to write")->capture_default_str();
    app.add_option("--print-every", o.print_every, "steps")->check(CLI::PositiveNumber)->capture_default_str();
    app.add_option("--threads", o.threads, "0 = one a core")->check(CLI::NonNegativeNumber)->capture_default_str();
    try {
        app.parse(argc, argv);
        if (o.data.empty()) throw CLI::RequiredError("--data");
        if (o.resume && o.run.checkpoint.empty()) throw CLI::RequiredError("--resume needs --checkpoint, which");
    } catch (const CLI::ParseError& e) {
        std::exit(app.exit(e) == 0 ? 0 : 2);
    }
    return o;
}

}  // namespace examples
