// SPDX-License-Identifier: MIT
// Command line of the trainers. CLI11 stays in train_options.cpp, so that no trainer compiles it.
#pragma once

#include <filesystem>
#include <string>

#include "sdepth/trainer.hpp"

namespace examples {

struct train_options {
    std::filesystem::path data;      ///< training text
    std::filesystem::path held_out;  ///< text of the evaluations; empty = a share of `data`
    double held_out_share = 0.1;
    bool resume = false;
    int threads = 0;
    long long print_every = 10;
    sdepth::training_settings run;
};

/// Reads the command line; throws sdepth::error if it would write over what it reads; prints help or one error and
/// exits where that is all there is to do.
train_options read_train_options(int argc, char** argv, const train_options& defaults);

}  // namespace examples
