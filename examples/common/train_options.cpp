// SPDX-License-Identifier: MIT
#include "common/train_options.hpp"

#include <algorithm>
#include <map>
#include <string>

#include "common/flags.hpp"
#include "sdepth/error.hpp"
#include "sdepth/file.hpp"

namespace examples {

namespace {

// What a run writes must be none of the files that it reads.
void check_paths(const train_options& o) {
    for (const auto* text : {&o.data, &o.held_out}) {
        for (const auto* written : {&o.run.checkpoint, &o.run.log}) {
            if (text->empty() || written->empty()) continue;
            const auto outer = std::filesystem::weakly_canonical(*text);
            const auto inner = std::filesystem::weakly_canonical(std::filesystem::absolute(*written));
            const bool within =
                std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
            if (within || sdepth::same_file(*text, *written))
                throw sdepth::error(written->string() + ": would be written into the text " + text->string() +
                                    "; name another place");
        }
    }
}

}  // namespace

train_options read_train_options(int argc, char** argv, const train_options& defaults) {
    train_options o = defaults;
    CLI::App app("Trains the model that this program was compiled for; its source names the formula.");
    app.add_option("--data", o.data, "text file, folder of texts, or .bin token file")->capture_default_str();
    app.add_option("--held-out", o.held_out, "text of the evaluations; without it a share of --data")
        ->capture_default_str();
    app.add_option("--held-out-share", o.held_out_share, "that share")->check(number(0, 0.9))->capture_default_str();
    app.add_option("--steps", o.run.steps, "optimiser steps")->check(number(1))->capture_default_str();
    app.add_option("--batch", o.run.sequences, "sequences of a step, a multiple of the micro-batch; 0 = one")
        ->check(number(0))
        ->capture_default_str();
    auto* rate =
        app.add_option("--rate", o.run.rate, "peak learning rate")->check(number_above(0))->capture_default_str();
    app.add_option("--warmup", o.run.warmup, "share of the steps in which the rate rises to its peak")
        ->check(number(0, 1))
        ->capture_default_str();
    const std::map<std::string, sdepth::optimiser> kinds{{"adamw", sdepth::optimiser::adamw},
                                                         {"muon", sdepth::optimiser::muon}};
    app.add_option("--optimiser", o.run.kind, "adamw or muon")
        ->transform(CLI::CheckedTransformer(kinds))
        ->default_str(o.run.kind == sdepth::optimiser::muon ? "muon" : "adamw");
    app.add_option("--seed", o.run.seed, "of first values and data order")->check(number(0))->capture_default_str();
    app.add_option("--checkpoint", o.run.checkpoint, "training file to write")->capture_default_str();
    auto* resume = app.add_flag("--resume", o.resume, "go on from --checkpoint");
    app.add_flag("--overwrite", o.run.overwrite, "a new run may replace another's --checkpoint");
    app.add_flag("--change-rate", o.run.change_rate, "go on with --rate, whatever the checkpoint was saved with")
        ->needs(resume)
        ->needs(rate);
    app.add_option("--save-every", o.run.save_every, "steps; 0 = at the end")->check(number(0))->capture_default_str();
    app.add_option("--evaluate-every", o.run.evaluate_every, "steps; 0 = at the end")
        ->check(number(0))
        ->capture_default_str();
    app.add_option("--log", o.run.log, "JSON Lines to write")->capture_default_str();
    app.add_option("--print-every", o.print_every, "steps")->check(number(1))->capture_default_str();
    app.add_option("--threads", o.threads, "of the host backend; 0 = one a core")
        ->check(number(0, 1024))
        ->capture_default_str();
    parse(app, argc, argv);
    if (o.data.empty()) usage_error(app, "--data is required");
    if (o.resume && o.run.checkpoint.empty()) usage_error(app, "--resume needs --checkpoint");
    check_paths(o);
    return o;
}

}  // namespace examples
