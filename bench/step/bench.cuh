// SPDX-License-Identifier: MIT
// Times whole training steps of one model on one GPU: forward, backward, clipping, update.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "models.hpp"
#include "step.hpp"
#include "timed_cuda.cuh"

namespace sdepth_bench {

inline constexpr double datasheet = 989e12;  // dense bf16, an H100 or H200

// Tokens and targets at random, another batch each step: the loss stays near log V.
struct random_batch {
    std::vector<int> tokens, targets;
    random_batch(std::uint64_t step, long long length, long long vocab) {
        for (long long i = 0; i < length; ++i) {
            const auto draw = [&](std::uint32_t stream) {
                return static_cast<int>(random_uniform(step, random_use::check, stream, static_cast<std::uint64_t>(i)) *
                                        static_cast<double>(vocab));
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
inline spread of(std::vector<double> ms) {
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

inline std::size_t free_bytes() {
    std::size_t free = 0, all = 0;
    on_cuda::check(cudaMemGetInfo(&free, &all), "bench");
    return free;
}

/// What the first loss of M is near. Rows leave the last norm with |y|^2 = d and meet a head of independent normal
/// numbers of deviation s: logits are normal with variance s^2 d, V of them have the mean exp(s^2 d / 2) under exp, and
/// targets are drawn apart from them, so that it is log V + s^2 d / 2.
template <class M>
double first_loss() {
    static_assert(!M::dims.tied);  // else a row's own token has a logit that is far from normal
    double variance = -1;
    for (const table_row& row : tensor_table<M>.rows)
        if (row.tensor.name == "lm_head.weight" && row.tensor.start.kind == init_kind::normal)
            variance = row.tensor.start.value * row.tensor.start.value * static_cast<double>(M::dims.width);
    return variance < 0 ? variance : std::log(static_cast<double>(M::dims.vocab)) + variance / 2;
}
/// By what it may miss it: six deviations of the mean over N rows, each of whose losses has the variance s^2 d, and of
/// the sum over the V numbers of the head, which all rows share.
template <class M>
double first_loss_tolerance(double rows) {
    const double vocab = static_cast<double>(M::dims.vocab), variance = 2 * (first_loss<M>() - std::log(vocab));
    return 6 * (std::sqrt(variance / rows) + std::sqrt(std::expm1(variance) / vocab));
}

/// Times steps of model M in run R and prints its rows.
/// @param size  of the model's family, as in the rows' names
template <class M, Run R>
measured bench(const char* size, const bench_request& ask) {
    const std::size_t before = free_bytes();
    timed_cuda backend({.graphs = !ask.profile, .aside = ask.aside && !ask.profile});
    pipeline<M, timed_cuda, R> model(backend);
    model.initialise(1);
    const step_totals totals{.targets = R.seq, .rows = R.seq};
    stopwatch clock(backend.stream());
    std::vector<random_batch> batches;
    for (std::uint64_t i = 0; i < 4; ++i) batches.emplace_back(i + 1, R.seq, M::dims.vocab);

    std::vector<double> whole, pass, update;
    for (int step = 0; step < 3 + ask.steps; ++step) {  // directly, recorded, replayed once
        const bool traced = ask.profile && step == 2;
        if (traced) backend.start();
        clock.mark(0);
        model.accumulate(batches[static_cast<std::size_t>(step % 4)].view(), totals);
        clock.mark(1);
        model.advance({.kind = R.moments, .rate = 1e-4, .step = step + 1});
        clock.mark(2);
        if (traced) {
            backend.report();
            std::printf("%s: the step with each operation timed %.2f ms\n", ask.name.c_str(), clock.between(0, 2));
            break;
        }
        if (step == 0) {
            const double loss = model.last_losses(totals).language;
            const double want = first_loss<M>();
            if (!(std::abs(loss - want) < first_loss_tolerance<M>(static_cast<double>(R.seq)))) {
                std::fprintf(stderr, "%s: a first loss of %f where first values give %f\n", ask.name.c_str(), loss,
                             want);
                std::exit(1);
            }
        }
        if (step < 3) continue;
        pass.push_back(clock.between(0, 1));
        update.push_back(clock.between(1, 2));
        whole.push_back(clock.between(0, 2));
    }
    const double loss = model.last_losses(totals).language;
    if (ask.profile) return {};
    const std::size_t taken = before - free_bytes();
    const spread ms = of(whole);
    constexpr auto planned = plan<M, timed_cuda, R>::peak_bytes;
    const double rate = static_cast<double>(R.seq) / ms.median * 1e3;
    constexpr double useful = flops<M, R>.useful.per_token().value();
    std::printf(
        "{\"name\": \"step/%s/%s/1x32768\", \"ours\": %.0f, \"unit\": \"tok/s\", \"ms\": %.2f, \"least_ms\": %.2f, "
        "\"most_ms\": %.2f, \"forward_backward_ms\": %.2f, \"optimiser_ms\": %.2f, \"mfu\": %.4f, \"loss\": %.3f, "
        "\"optimiser\": \"%s\", \"replay\": %d}\n",
        size, ask.name.c_str(), rate, ms.median, ms.least, ms.most, of(pass).median, of(update).median,
        rate * useful / datasheet, loss, R.moments == optimiser::muon ? "muon" : "adamw", static_cast<int>(R.replay));
    std::printf(
        "{\"name\": \"memory/%s/%s\", \"ours\": %zu, \"unit\": \"bytes\", \"peer\": %lld, \"peer_name\": "
        "\"the plan\", \"ratio\": %.4f}\n",
        size, ask.name.c_str(), taken, planned, static_cast<double>(planned) / static_cast<double>(taken));
    std::fflush(stdout);
    return {of(pass).median, flops<M, R>.training.per_token().value()};
}

}  // namespace sdepth_bench
