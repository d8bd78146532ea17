// SPDX-License-Identifier: MIT
// What cases of wrong runs share: a model, and everything that takes a run, with exact assertions.
#pragma once

#include "formula.hpp"
#include "sdepth/alignment.hpp"
#include "sdepth/decoder.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "sdepth/partner.hpp"
#include "sdepth/pipeline.hpp"
#include "sdepth/plan.hpp"
#include "sdepth/token_budget.hpp"

inline constexpr auto run_formula = dense + sparse<4> * 8_c + dense;
using RunModel = Model<run_formula, small>;

/// Counts of a run of 64 tokens and at least two sequences. None of them but the first depends on anything else.
template <Run R>
constexpr bool used_as_usual() {
    using M = RunModel;
    static_assert(flops<M, R>.paper_with_head.tokens == 64 && flops<M, R>.forward.per_token().value() > 1000);
    static_assert(state<M, R>.kv_capacity == 10 * 2 * 32 * 2 * 64);
    static_assert(tokens_for<M, R>(1e15).training > 1000 && tokens_for<M, R>(1e15).batch_tokens > 64);
    static_assert(plan<M, host<float>, R>::peak_bytes > 1000 && plan<M, host<float>, R>::saved_offsets.size() == 3);
    static_assert(decoding_bytes<M, host<float>, R> > 1000);
    using Partner = equal_flops<M, R>;
    static_assert(Partner::layers == 4 && params<Partner>.total > 1000);
    static_assert(matched<M, Partner, R>.flops.value() > 0.5 && matched<M, M, R>.tokens == ratio(1));
    static_assert(alignment<M, M, R>.depth.first == ratio(10) && alignment<M, M, R>.axes().size() == 7);
    return true;
}

/// The run-time half compiles.
template <Run R>
void run_as_usual() {
    host<float> backend(1);
    pipeline<RunModel, host<float>, R> model(backend);
    model.initialise(1);
    decoder<RunModel, host<float>, R> text(backend);
}
