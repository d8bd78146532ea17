// SPDX-License-Identifier: MIT
// At a size that a processor trains in minutes.
#include "sdepth/kernels/host/host.hpp"
#include "selection_rules.hpp"

using namespace sdepth;

int main(int argc, char** argv) {
    constexpr Dims sizes{.width = 64, .head_dim = 32, .heads = 2, .kv_heads = 1, .ffn = 192, .vocab = 256};
    examples::train_options defaults;
    defaults.run.steps = 800;
    defaults.run.kind = optimiser::muon;
    defaults.run.rate = 5e-3;
    return selection_rules::run<sizes, Run{.seq = 128, .batch = 8}>(argc, argv, defaults,
                                                                    [](int threads) { return host<float>(threads); });
}
