// SPDX-License-Identifier: MIT
// Times whole training steps at 1 x 32768 tokens on one GPU: the 556M models with AdamW, and with 936M the largest that
// one card holds, A3K16 with Muon.
//   step [--profile] [--in-line] [--steps N] [dense] [mod] [a4k8] [a3k16] [936M]
// Prints rows of JSON for scripts/bench_merge.py; --profile prints where one step goes instead. --in-line: gradients of
// weights wait for their turn instead of running beside what follows. Without names: all but 936M.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sdepth/error.hpp"
#include "sdepth/kernels/cuda/error.cuh"
#include "step.hpp"

using namespace sdepth_bench;
using sdepth::error;
namespace on_cuda = sdepth::on_cuda;

int main(int argc, char** argv) try {
    bench_request ask;
    std::vector<std::string> names;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--profile")
            ask.profile = true;
        else if (word == "--in-line")
            ask.aside = false;
        else if (word == "--steps" && i + 1 < argc)
            ask.steps = std::atoi(argv[++i]);
        else if (word == "dense" || word == "mod" || word == "a4k8" || word == "a3k16" || word == "936M")
            names.emplace_back(word);
        else
            throw error("step: '" + std::string(word) + "' is neither a model nor a flag; the source's top names them");
    }
    if (ask.steps < 1) throw error("step: --steps is to be a number of at least 1");
    if (names.empty()) names = {"dense", "mod", "a4k8", "a3k16"};
    std::map<std::string, measured> all;
    on_cuda::check(cudaFree(nullptr), "bench");  // the context is not ours
    for (const std::string& name : names) {
        ask.name = name;
        if (name == "dense") all[name] = bench_dense(ask);
        if (name == "mod") all[name] = bench_mod(ask);
        if (name == "a4k8") all[name] = bench_a4k8(ask);
        if (name == "a3k16") all[name] = bench_a3k16(ask);
        if (name == "936M") bench_936m(ask);
        if (ask.profile || name == "936M" || name == "dense" || all.count("dense") == 0) continue;
        const measured &dense = all["dense"], &own = all[name];
        const double faster = dense.forward_backward / own.forward_backward, less = dense.flops / own.flops;
        std::printf(
            "{\"name\": \"realised/556M/%s/1x32768\", \"ours\": %.4f, \"unit\": \"x\", \"peer\": %.4f, "
            "\"peer_name\": \"executed FLOPs of Dense over its own\", \"ratio\": %.4f}\n",
            name.c_str(), faster, less, faster / less);
    }
    return 0;
} catch (const error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
