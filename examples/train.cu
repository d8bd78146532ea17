// SPDX-License-Identifier: MIT
// Trains the small X-MoD model on one GPU: the formula, the trainer and the files of train.cpp on the CUDA backend.
#include <cstdio>

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

std::size_t used_bytes() {
    std::size_t free = 0, all = 0;
    on_cuda::check(cudaMemGetInfo(&free, &all), "device memory");
    return all - free;
}

template <recompute Replay>
void print_plan(const char* policy) {
    using m = memory<Replay>;
    const auto gib = [](long long bytes) { return static_cast<double>(bytes) / (1LL << 30); };
    std::printf("%-10s %8.2f %12.2f %8.2f %8.2f %10.2f\n", policy, gib(m::peak_bytes), gib(m::parameter_bytes),
                gib(m::batch_bytes), gib(m::layer_region_bytes), gib(m::workspace_bytes));
}

template <recompute Replay>
void train(const examples::train_options& options) {
    cuda<> backend;
    pipeline<M, cuda<>, replaying<Replay>> model(backend);
    examples::print_model<decltype(model)>();
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
            examples::print_progress(now, options.run.steps, useful, datasheet);
            std::printf("            MFU of the datasheet's 989 TFLOP/s; %.2f GiB in use\n",
                        static_cast<double>(used_bytes()) / (1LL << 30));
        },
        [](long long step, const evaluation& e) { examples::print_evaluation<M>(step, e); });
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
    std::size_t free = 0, all = 0;
    on_cuda::check(cudaMemGetInfo(&free, &all), "device memory");
    const auto fits = [&](long long bytes) { return static_cast<std::size_t>(bytes) <= free - free / 100; };
    if (fits(memory<recompute::none>::peak_bytes)) {
        std::printf("everything is kept from forward to backward\n");
        train<recompute::none>(options);
    } else if (fits(memory<recompute::selective>::peak_bytes)) {
        std::printf("norms and hidden rows are computed again in the backward: with them the model does not fit\n");
        train<recompute::selective>(options);
    } else if (fits(memory<recompute::full>::peak_bytes)) {
        std::printf("each layer is computed again in its backward: only so the model fits\n");
        train<recompute::full>(options);
    } else {
        std::printf("GiB             all   parameters    batch   layers  workspace\n");
        print_plan<recompute::none>("none");
        print_plan<recompute::selective>("selective");
        print_plan<recompute::full>("full");
        std::fprintf(stderr, "the model does not fit: the device has %.2f GiB free; lower Run::batch or Run::seq\n",
                     static_cast<double>(free) / (1LL << 30));
        return 1;
    }
    return 0;
} catch (const std::exception& e) {
    return examples::failed(e);
}
