// SPDX-License-Identifier: MIT
// At the size of the experiments that the defaults of routing rest on.
#include "sdepth/cuda.cuh"
#include "selection_rules.hpp"

using namespace sdepth;

int main(int argc, char** argv) {
    constexpr Dims sizes{.width = 256, .head_dim = 64, .heads = 4, .kv_heads = 2, .ffn = 768, .vocab = 256};
    examples::train_options defaults;
    defaults.run.steps = 1000;
    defaults.run.rate = 2e-3;
    defaults.run.warmup = 0.05;
    return selection_rules::run<sizes, Run{.seq = 1024, .batch = 16}>(argc, argv, defaults,
                                                                      [](int) { return cuda<>(); });
}
