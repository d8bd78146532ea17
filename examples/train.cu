// SPDX-License-Identifier: MIT
// Trains the small X-MoD model on one GPU: the formula, the trainer and the files of train.cpp on the CUDA backend.
#include <algorithm>
#include <cstdio>
#include <string>

#include "common/console.hpp"
#include "common/failure.hpp"
#include "common/train_options.hpp"
#include "models/small_x_mod.hpp"
#include "sdepth/cuda.cuh"
#include "sdepth/trainer.hpp"

using namespace sdepth;
using M = examples::SmallXMoD;

namespace {

constexpr Run run = examples::small_run;
constexpr double datasheet = 989e12;  // dense bf16 FLOP/s of an H100 or H200

template <recompute Replay>
constexpr Run replaying = [] {
    Run r = run;
    r.replay = Replay;
    return r;
}();
template <recompute Replay>
using memory = plan<M, cuda<>, replaying<Replay>>;

// Kept free beside the plan: what recorded graphs and the code of kernels take.
constexpr std::size_t beside_plan = std::size_t{256} << 20;

// Free memory of the device. Throws sdepth::error where there is none.
std::size_t free_bytes() {
    int devices = 0;
    if (const cudaError_t found = cudaGetDeviceCount(&devices); found != cudaSuccess)
        throw error(std::string("there is no GPU to train on: CUDA says '") + cudaGetErrorString(found) +
                    "'; look at nvidia-smi and at CUDA_VISIBLE_DEVICES, or run `train`, which needs none");
    std::size_t free = 0, all = 0;
    on_cuda::check(cudaMemGetInfo(&free, &all), "device memory");
    return free;
}
constexpr double mib(auto bytes) { return static_cast<double>(bytes) / (1 << 20); }

template <recompute Replay>
void print_plan(const char* policy) {
    using m = memory<Replay>;
    std::printf("%-10s %10.1f %12.1f %8.1f %10.1f %10.1f\n", policy, mib(m::peak_bytes), mib(m::parameter_bytes),
                mib(m::batch_bytes), mib(m::layer_region_bytes), mib(m::workspace_bytes));
}

template <recompute Replay>
void train(const examples::train_options& options, std::size_t free) {
    const corpus text = corpus::open(options.data);
    const corpus_split parts = options.held_out.empty() ? text.split(options.held_out_share)
                                                        : corpus_split{text, corpus::open(options.held_out)};
    cuda<> backend;
    pipeline<M, cuda<>, replaying<Replay>> model(backend);
    examples::print_model<decltype(model)>();
    std::printf("peak: %.0f TFLOP/s of the datasheet, of which shares are MFU\n", datasheet / 1e12);
    trainer training(model, parts.training, parts.held_out, options.run);
    options.resume ? training.resume(options.run.checkpoint) : training.start();
    examples::print_differences(training.differences());
    if (training.state().step == options.run.steps) std::printf("all %lld steps are done\n", options.run.steps);
    constexpr double useful = flops<M, run>.useful.per_token().value();
    training.run(
        examples::stop_requested(),
        [&](const progress& now) { examples::print_progress(now, options.run.steps, useful, datasheet); },
        [&](long long step, const evaluation& e) {
            examples::print_evaluation<M>(step, e);
            // By now all graphs are recorded. What other programs take since the start counts too.
            std::printf("            %.1f MiB of the device taken\n", mib(free - std::min(free, free_bytes())));
            std::fflush(stdout);
        });
    examples::print_end(training.state(), options.run.checkpoint);
}

}  // namespace

int main(int argc, char** argv) try {
    examples::train_options defaults;
    defaults.run.steps = 500;
    defaults.run.kind = optimiser::muon;
    defaults.run.rate = 5e-3;
    auto options = examples::read_train_options(argc, argv, defaults);
    options.run.log_every = options.print_every;
    examples::stop_on_interrupt();

    // The policy that computes least again, of those that fit; nothing is allocated before one is found.
    const std::size_t free = free_bytes();
    const auto fits = [&](long long bytes) {
        return static_cast<std::size_t>(bytes) + beside_plan <= free - free / 100;
    };
    if (fits(memory<recompute::none>::peak_bytes)) {
        std::printf("everything is kept from forward to backward\n");
        train<recompute::none>(options, free);
    } else if (fits(memory<recompute::selective>::peak_bytes)) {
        std::printf("norms and hidden rows are computed again in the backward: with them the model does not fit\n");
        train<recompute::selective>(options, free);
    } else if (fits(memory<recompute::full>::peak_bytes)) {
        std::printf("each layer is computed again in its backward: only so the model fits\n");
        train<recompute::full>(options, free);
    } else {
        std::printf("MiB               all   parameters    batch     layers  workspace\n");
        print_plan<recompute::none>("none");
        print_plan<recompute::selective>("selective");
        print_plan<recompute::full>("full");
        std::fflush(stdout);
        std::fprintf(stderr,
                     "the model does not fit: the device has %.1f MiB free, of which %.1f stay so for graphs and code; "
                     "lower Run::batch or Run::seq\n",
                     mib(free), mib(beside_plan + free / 100));
        return 1;
    }
    return 0;
} catch (const std::exception& e) {
    return examples::failed(e);
}
