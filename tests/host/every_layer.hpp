// SPDX-License-Identifier: MIT
// What every model does on host<float>, whatever its layers: train, evaluate, decode. Run under sanitizers too, where
// the laws are not.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "sdepth/decoder.hpp"
#include "sdepth/pipeline.hpp"
#include "sdepth/sdepth.hpp"
#include "support/catch.hpp"
#include "support/host_operations.hpp"
#include "support/random_batch.hpp"

namespace every_layer {

using namespace sdepth;
using namespace sdepth::literals;
using sdepth_test::random_batch;

// No size is a multiple of a vector's or a block's.
inline constexpr Dims odd{
    .width = 20, .head_dim = 6, .heads = 4, .kv_heads = 2, .ffn = 21, .expert_ffn = 9, .vocab = 37};
inline constexpr Run kept{.seq = 67, .batch = 2, .max_documents = 3};
inline constexpr Run replayed{.seq = 67, .batch = 2, .max_documents = 3, .replay = recompute::full};
inline constexpr Run partly_replayed{.seq = 67, .batch = 2, .max_documents = 3, .replay = recompute::selective};

inline constexpr double least_fall = 0.2;  // nats a target in twelve steps; tokens are random, to be learnt by heart

template <class M, Run R>
struct float_model {
    host<float> backend{2};
    pipeline<M, host<float>, R> model{backend};
    float_model() { model.initialise(1); }

    std::vector<float> gradients() const {
        const float* g = model.parameters().gradients;
        return {g, g + tensor_table<M>.elements};
    }
};

/// Steps of two packed micro-batches, the same ones each time: the loss falls, under both rules where there are two.
/// Returns the gradients of the first micro-batch.
template <class M, Run R>
std::vector<float> trains(optimiser kind) {
    float_model<M, R> run;
    const random_batch one = random_batch::of<M, R>(1, true), two = random_batch::of<M, R>(2, true);
    const step_totals totals{one.totals.targets + two.totals.targets, one.totals.rows + two.totals.rows};
    const auto evaluation = [&](selection_rule rule) {
        if constexpr (is_causal<M>)
            return run.model.evaluate(one.view(true), rule);
        else
            return run.model.evaluate_non_causal(one.view(true), unobserved{});
    };
    const double before[] = {evaluation(selection_rule::top), evaluation(selection_rule::threshold)};
    std::vector<float> first;
    std::vector<double> losses;
    for (long long step = 1; step <= 12; ++step) {
        run.model.accumulate(one.view(true), totals);
        if (step == 1) first = run.gradients();
        run.model.accumulate(two.view(true), totals);
        const step_losses now = run.model.update({.kind = kind, .rate = 1e-2, .decay = 0.01, .step = step}, totals);
        REQUIRE(std::isfinite(now.total()));
        losses.push_back(now.language);
    }
    CHECK(std::abs(losses.front() - std::log(static_cast<double>(M::dims.vocab))) < 0.5);  // it starts by guessing
    CHECK(losses.back() < losses.front() - least_fall);
    const double fall = least_fall * static_cast<double>(one.totals.targets);
    CHECK(evaluation(selection_rule::top) < before[0] - fall);
    CHECK(evaluation(selection_rule::threshold) < before[1] - fall);
    CHECK(std::any_of(first.begin(), first.end(), [](float g) { return g != 0; }));
    return first;
}

/// Decoding by passes and by single tokens gives the logits of the evaluation. Each of some ten layers rounds sums of
/// up to 134 terms, in each of the two computations: 2 * 10 * 134 * 2^-24 < 2e-4.
template <class M>
void decodes() {
    float_model<M, kept> run;
    const random_batch batch = random_batch::of<M, kept>(3, false);
    const auto full = run.model.logits(batch.view(false));
    constexpr Run passes{.seq = 7, .batch = 2, .context = 67};
    decoder<M, host<float>, passes> text(run.backend);
    std::copy_n(run.model.parameters().weights, tensor_table<M>.elements, text.parameters().weights);

    std::size_t done[] = {0, 0};
    const auto extend = [&](std::size_t first, std::size_t second) {
        std::vector<std::vector<int>> next(2);
        for (const std::size_t b : {std::size_t{0}, std::size_t{1}}) {
            const auto from = batch.tokens.begin() + static_cast<std::ptrdiff_t>(67 * b + done[b]);
            next[b].assign(from, from + static_cast<std::ptrdiff_t>(b == 0 ? first : second));
            done[b] += next[b].size();
        }
        const auto logits = text.extend(next);
        for (const std::size_t b : {std::size_t{0}, std::size_t{1}}) {
            for (std::size_t v = 0; v < logits[b].size(); ++v) {
                const float expected = full[(67 * b + done[b] - 1) * 37 + v];
                INFO("sequence " << b << ", row " << done[b] - 1 << ", logit " << v);
                REQUIRE(std::abs(logits[b][v] - expected) <= 2e-4F * std::max(1.0F, std::abs(expected)));
            }
        }
    };
    extend(40, 9);
    while (done[0] < 67 || done[1] < 67) extend(done[0] < 67 ? 1 : 0, done[1] < 67 ? 1 : 0);
}

}  // namespace every_layer
