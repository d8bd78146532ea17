// SPDX-License-Identifier: MIT
// A whole training program around a wrong formula: still the rule's one error.
// expect: sdepth: heads must be a multiple of kv_heads
// numbers: kv_heads_divide_heads 1 5 2
#include <atomic>
#include <string>

#include "formula.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "sdepth/pipeline.hpp"
#include "sdepth/trainer.hpp"

constexpr auto formula = dense + sparse<4> * 2_c + dense;
#ifdef TWIN
using M = Model<formula, with(&Dims::heads, 6)>;
#else
using M = Model<formula, with(&Dims::heads, 5)>;
#endif
constexpr Run short_run{.seq = 16};
static_assert(plan<M, host<float>, short_run>::peak_bytes >= 0);

std::string train(const training_settings& settings, const corpus& text) {
    host<float> backend(1);
    pipeline<M, host<float>, short_run> model(backend);
    trainer training(model, text, text, settings);
    training.start();
    const std::atomic<bool> stop = false;
    training.run(
        stop, [](const progress&) {}, [](long long, const evaluation&) {});
    return contract_text<M>({.run = short_run});
}
