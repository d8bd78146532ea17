// SPDX-License-Identifier: MIT
// Everything that the library says of a model, with exact assertions as programs make them, some in the negative. For a
// model that broke a rule each must hold or be skipped: its one error stands alone.
#pragma once

#include "formula.hpp"
#include "sdepth/alignment.hpp"
#include "sdepth/decoder.hpp"
#include "sdepth/hana.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "sdepth/law.hpp"
#include "sdepth/partner.hpp"
#include "sdepth/pipeline.hpp"
#include "sdepth/plan.hpp"
#include "sdepth/report.hpp"
#include "sdepth/routing_statistics.hpp"
#include "sdepth/tensor_table.hpp"
#include "sdepth/token_budget.hpp"

inline constexpr auto good_formula = dense + sparse<4> * 8_c + dense;
using Good = Model<good_formula, small>;
inline constexpr Run used{.seq = 64, .batch = 2};

/// M is `Good` or broken.
template <class M>
constexpr bool everything_as_usual() {
    using B = host<float>;

    static_assert(M::layers == 10 && M::ffn_layers == 10 && M::runs.size() == 3 && M::kinds::size == 2);
    static_assert(!M::runs.empty() && M::runs.back().times == 1);
    static_assert(active_layers<M> == ratio(4) && !(active_layers<M> == ratio(5)) && active_depth<M> == ratio(4));
    static_assert(is_causal<M> && !(!is_causal<M>)&&require_causal<M>());

    static_assert(counted<params<M>.total, 403'592>());
    static_assert(params<M>.total % 5 == 2 && params<M>.total / 2 == 201'796 && params<M>.of(role::head) == 256 * 64);
    static_assert(params<M>.by_role.size() == role_count && params<M>.file_elements() - params<M>.total == 8);
    static_assert((params<M>.active / ratio(2)).value() > 90'000 && params<M>.active.whole() == 181'448);
    static_assert(params<M>.active * 2 == ratio(362'896) && 1.5 * params<M>.active.value() == 272'172);
    static_assert(1'000'000'000 / params<M>.total == 2477 && params<M>.total - params<M>.paper == 2184);

    static_assert(flops<M, used>.paper.per_token() == 335'872 && flops<M, used>.training.tokens == 64);
    static_assert(flops<M, used>.useful.sequence / flops<M, used>.forward.sequence == ratio(3));
    static_assert(state<M, used>.kv_expected / ratio(64) == ratio(512) && state<M, used>.recurrent == 0);
    static_assert(digest<M> != 0 && digest<M> != digest<Model<dense, small>>);

    static_assert(tokens_for<M, used>(1e15).steps() == 7'753'449 && tokens_for<M, used>(1e15).batch_tokens == 128);
    static_assert(residual({.active = params<M>.active.value(), .seq = 2048, .sparsity = 4, .capacity = 2.5}) < 1);

    static_assert(equal_active<M>::layers == 4 && equal_flops<M, used>::layers == 4 && equal_params<M>::layers == 10);
    static_assert(params<equal_params_wider<M>>.total == 426'688);
    static_assert(matched<M, equal_active<M>, used>.flops.den() == 44 && matched<Good, M, used>.tokens == ratio(1));
    static_assert(alignment<M, M, used>.total.equal() && alignment<Good, M, used>.kv.quotient() == ratio(1));
    static_assert(!alignment<M, Model<dense, small>, used>.kv.equal() && alignment<M, M, used>.axes().size() == 7);

    static_assert(tensor_table<M>.rows.size() == 39 && tensor_table<M>.elements == 409'728);
    static_assert(sparse_layers<M> == 8 && expert_layers<M> == 0 && stored_slots<M> == 0);
    static_assert(plan<M, B, used>::peak_bytes % 256 == 0 && plan<M, B, used>::saved_offsets.size() == 3);
    static_assert(plan<M, B, used>::saved_bytes / 8 > 1 && plan<M, B, used>::layer_region_bytes < 1'000'000'000);
    static_assert(decoding_bytes<M, B, used> / 256 > 1000);
    static_assert(independent_reference<M>().layers == 8 && independent_reference<M>().coverage() > 0.89 &&
                  independent_reference<M>().coverage() < 0.91);
    static_assert(independent_reference<M>().share() == 0.25 && independent_reference<M>().updates(9) == 0);
    static_assert(std::is_same_v<decltype(runs_as_hana<M>), const hana_runs<M>>);
    return true;
}

/// The run-time half compiles.
template <class M>
std::string everything_runs() {
    host<float> backend(1);
    pipeline<M, host<float>, used> model(backend);
    model.initialise(1);
    decoder<M, host<float>, used> text(backend);
    return report<M, used>() + contract_text<M>({.run = used});
}
