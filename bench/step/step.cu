// SPDX-License-Identifier: MIT
// Times whole training steps of the 556M models at 1 x 32768 tokens on one GPU: forward, backward, clipping, AdamW.
//   step [--profile] [--in-line] [--steps N] [dense] [mod] [a4k8] [a3k16]
// Prints rows of JSON for scripts/bench_merge.py; --profile prints where one step goes instead. --in-line: gradients of
// weights wait for their turn instead of running beside what follows.
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models.hpp"
#include "timed_cuda.cuh"

using namespace sdepth_bench;

namespace {

constexpr Run run{.seq = 32768};
constexpr double datasheet = 989e12;  // dense bf16, an H100 or H200

// Tokens and targets at random, another batch each step: the loss stays near log V.
struct random_batch {
    std::vector<int> tokens, targets;
    explicit random_batch(std::uint64_t step) {
        for (long long i = 0; i < run.seq; ++i) {
            const auto draw = [&](std::uint32_t stream) {
                return static_cast<int>(random_uniform(step, random_use::check, stream, static_cast<std::uint64_t>(i)) *
                                        static_cast<double>(size_556m.vocab));
            };
            tokens.push_back(draw(1));
            targets.push_back(draw(2));
        }
    }
    batch_view view() const { return {tokens.data(), targets.data()}; }
};

struct spread {
    double median = 0, least = 0, most = 0;
};
spread of(std::vector<double> ms) {
    std::sort(ms.begin(), ms.end());
    return {ms[ms.size() / 2], ms.front(), ms.back()};
}

class stopwatch {
  public:
    explicit stopwatch(cudaStream_t stream) : stream_(stream) {
        for (cudaEvent_t& e : at_) on_cuda::check(cudaEventCreate(&e), "bench");
    }
    ~stopwatch() {
        for (const cudaEvent_t e : at_) cudaEventDestroy(e);
    }
    stopwatch(const stopwatch&) = delete;
    stopwatch& operator=(const stopwatch&) = delete;
    void mark(int i) { on_cuda::check(cudaEventRecord(at_[i], stream_), "bench"); }
    double between(int i, int j) const {
        float ms = 0;
        on_cuda::check(cudaEventSynchronize(at_[j]), "bench");
        on_cuda::check(cudaEventElapsedTime(&ms, at_[i], at_[j]), "bench");
        return static_cast<double>(ms);
    }

  private:
    cudaStream_t stream_;
    cudaEvent_t at_[3] = {};
};

std::size_t free_bytes() {
    std::size_t free = 0, all = 0;
    on_cuda::check(cudaMemGetInfo(&free, &all), "bench");
    return free;
}

struct measured {
    double forward_backward = 0;  // ms
    double flops = 0;             // executed, without replay
};

template <class M>
measured bench(const std::string& name, int steps, bool profile, bool aside) {
    const std::size_t before = free_bytes();
    timed_cuda backend({.graphs = !profile, .aside = aside && !profile});
    pipeline<M, timed_cuda, run> model(backend);
    model.initialise(1);
    const step_totals totals{.targets = run.seq, .rows = run.seq};
    stopwatch clock(backend.stream());
    std::vector<random_batch> batches;
    for (std::uint64_t i = 0; i < 4; ++i) batches.emplace_back(i + 1);

    std::vector<double> whole, pass, update;
    for (int step = 0; step < 3 + steps; ++step) {  // directly, recorded, replayed once
        const bool traced = profile && step == 2;
        if (traced) backend.start();
        clock.mark(0);
        model.accumulate(batches[static_cast<std::size_t>(step % 4)].view(), totals);
        clock.mark(1);
        model.advance({.rate = 1e-4, .step = step + 1});
        clock.mark(2);
        if (traced) {
            backend.report();
            std::printf("%s: the step with each operation timed %.2f ms\n", name.c_str(), clock.between(0, 2));
            break;
        }
        if (step == 0) {
            const double loss = model.last_losses(totals).language;
            if (std::abs(loss - std::log(static_cast<double>(size_556m.vocab))) > .3) {
                std::fprintf(stderr, "%s: a first loss of %f is not log V\n", name.c_str(), loss);
                std::exit(1);
            }
        }
        if (step < 3) continue;
        pass.push_back(clock.between(0, 1));
        update.push_back(clock.between(1, 2));
        whole.push_back(clock.between(0, 2));
    }
    const double loss = model.last_losses(totals).language;
    if (profile) return {};
    const std::size_t taken = before - free_bytes();
    const spread ms = of(whole);
    constexpr auto planned = plan<M, timed_cuda, run>::peak_bytes;
    const double rate = static_cast<double>(run.seq) / ms.median * 1e3;
    constexpr double useful = flops<M, run>.useful.per_token().value();
    std::printf(
        "{\"name\": \"step/556M/%s/1x32768\", \"ours\": %.0f, \"unit\": \"tok/s\", \"ms\": %.2f, \"least_ms\": %.2f, "
        "\"most_ms\": %.2f, \"forward_backward_ms\": %.2f, \"optimiser_ms\": %.2f, \"mfu\": %.4f, \"loss\": %.3f}\n",
        name.c_str(), rate, ms.median, ms.least, ms.most, of(pass).median, of(update).median, rate * useful / datasheet,
        loss);
    std::printf(
        "{\"name\": \"memory/556M/%s\", \"ours\": %zu, \"unit\": \"bytes\", \"peer\": %lld, \"peer_name\": "
        "\"the plan\", \"ratio\": %.4f}\n",
        name.c_str(), taken, planned, static_cast<double>(planned) / static_cast<double>(taken));
    std::fflush(stdout);
    return {of(pass).median, flops<M, run>.training.per_token().value()};
}

}  // namespace

int main(int argc, char** argv) try {
    bool profile = false, aside = true;
    int steps = 5;
    std::vector<std::string> names;
    for (int i = 1; i < argc; ++i) {
        const std::string_view word = argv[i];
        if (word == "--profile")
            profile = true;
        else if (word == "--in-line")
            aside = false;
        else if (word == "--steps" && i + 1 < argc)
            steps = std::atoi(argv[++i]);
        else
            names.emplace_back(word);
    }
    if (names.empty()) names = {"dense", "mod", "a4k8", "a3k16"};
    std::map<std::string, measured> all;
    on_cuda::check(cudaFree(nullptr), "bench");  // the context is not ours
    for (const std::string& name : names) {
        if (name == "dense") all[name] = bench<Dense556>(name, steps, profile, aside);
        if (name == "mod") all[name] = bench<MoD556>(name, steps, profile, aside);
        if (name == "a4k8") all[name] = bench<A4K8>(name, steps, profile, aside);
        if (name == "a3k16") all[name] = bench<A3K16>(name, steps, profile, aside);
        if (profile || all.count("dense") == 0 || name == "dense") continue;
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
