// SPDX-License-Identifier: MIT
// Held-out losses of a model under both selection rules, and what its routers, experts and depth slots did. Rank 7.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sdepth/data.hpp"
#include "sdepth/depth_mass.hpp"
#include "sdepth/expert_load.hpp"
#include "sdepth/pipeline.hpp"
#include "sdepth/routing_statistics.hpp"

namespace sdepth::inline v0 {

/// Held-out losses of one evaluation, nats a token, each over every held-out token once.
struct evaluation {
    double causal = 0;          ///< under the deployable threshold rule; not a number where routers see the future
    double top = 0;             ///< under the training rule, which sees the future
    route_report causal_route;  ///< masks of the pass under the threshold rule
    route_report top_route;     ///< masks of the pass under the training rule
    std::vector<expert_load> experts;  ///< choices of expert layers in the causal pass, or the only one
    std::vector<depth_mass> depth;     ///< attention to depth slots in the same pass
    std::int64_t tokens = 0;

    double gap() const { return causal - top; }
};

/// A batch as the pipeline takes it: documents and padding only where there are any, for plain batches run faster.
inline batch_view view_of(const token_batch& batch) {
    const bool documents = std::any_of(batch.document.begin(), batch.document.end(), [](int d) { return d > 0; });
    const bool padding = std::any_of(batch.live.begin(), batch.live.end(), [&](int n) { return n < batch.length; });
    return {batch.tokens.data(), batch.targets.data(), documents ? batch.document.data() : nullptr,
            padding ? batch.live.data() : nullptr};
}

namespace detail {

// Copies the masks of one sparse layer to the observer.
template <class Pipeline, class Record>
void observe_layer(Pipeline& pipeline, route_observer& observer, const token_batch& batch, long long layer,
                   const Record& record) {
    constexpr int sequences = static_cast<int>(Pipeline::run_sizes.batch);
    constexpr int length = static_cast<int>(Pipeline::run_sizes.seq);
    constexpr auto rows = static_cast<std::size_t>(sequences) * static_cast<std::size_t>(length);
    std::vector<int> ids(rows), live(static_cast<std::size_t>(sequences));
    std::vector<typename Pipeline::backend_type::precision::sum> logits(rows);
    read(pipeline.backend(), live.data(), record.live, sequences);
    for (int b = 0; b < sequences; ++b) {  // what is beyond these was never written
        const auto row = static_cast<std::size_t>(b), at = row * static_cast<std::size_t>(length);
        read(pipeline.backend(), ids.data() + at, record.ids + at, live[row]);
        read(pipeline.backend(), logits.data() + at, record.biased + at, batch.live[row]);
    }
    observer.observe(layer, sparsity_of<typename Pipeline::model>(layer), sequences, length, length, ids.data(),
                     live.data(), logits.data(), batch.live.data());
}

inline void add_loads(std::vector<expert_load>& all, const std::vector<expert_load>& more) {
    all.resize(more.size());
    for (std::size_t i = 0; i < more.size(); ++i) all[i].layer = more[i].layer, all[i].add(more[i]);
}

inline void add_masses(std::vector<depth_mass>& all, const std::vector<depth_mass>& more) {
    all.resize(more.size());
    for (std::size_t i = 0; i < more.size(); ++i) all[i].add(more[i]);
}

}  // namespace detail

/// Evaluates a pipeline on a whole text, or returns nothing once `stop` is set: it is read before each batch. A model
/// whose routers see the future has a loss under the training rule only. Throws sdepth::error if no token has a target.
template <class Pipeline>
std::optional<evaluation> evaluate_unless(const std::atomic<bool>& stop, Pipeline& pipeline, const corpus& text,
                                          document_end end = document_end::next) {
    using M = typename Pipeline::model;
    constexpr Run r = Pipeline::run_sizes;
    const batch_layout layout{.length = static_cast<int>(r.seq), .sequences = static_cast<int>(r.batch), .end = end};
    const validation_batches batches(text, layout);
    evaluation out;
    token_batch batch;
    constexpr selection_rule counted = is_causal<M> ? selection_rule::threshold : selection_rule::top;
    // False if it was stopped.
    const auto pass = [&](selection_rule rule, double& loss, route_report& route) {
        route_observer observer;
        out.tokens = 0;
        for (std::uint64_t i = 0; i < batches.count(); ++i) {
            if (stop.load()) return false;
            batches.fill(i, batch);
            out.tokens += batch.targets_count;
            const auto observe = [&](long long layer, const auto& record) {
                detail::observe_layer(pipeline, observer, batch, layer, record);
            };
            std::vector<expert_load> loads;
            std::vector<depth_mass> masses;
            if constexpr (is_causal<M>) {
                loss += pipeline.evaluate(view_of(batch), rule, observe, &loads, &masses);
            } else {
                loss += pipeline.evaluate_non_causal(view_of(batch), observe, &loads, &masses);
            }
            observer.end_batch();
            if (rule != counted) continue;
            detail::add_loads(out.experts, loads);
            detail::add_masses(out.depth, masses);
        }
        if (out.tokens == 0) throw error("no token of the text to evaluate has a target; give a longer text");
        loss /= static_cast<double>(out.tokens);
        route = observer.report();
        return true;
    };
    if constexpr (is_causal<M>) {
        if (!pass(selection_rule::threshold, out.causal, out.causal_route)) return std::nullopt;
    } else {
        out.causal = std::numeric_limits<double>::quiet_NaN();
    }
    if (is_causal<M> && sparse_layers<M> == 0) {
        out.top = out.causal;
    } else if (!pass(selection_rule::top, out.top, out.top_route)) {
        return std::nullopt;
    }
    return out;
}

/// The same, to its end.
template <class Pipeline>
evaluation evaluate(Pipeline& pipeline, const corpus& text, document_end end = document_end::next) {
    const std::atomic<bool> never{false};
    return *evaluate_unless(never, pipeline, text, end);
}

}  // namespace sdepth::inline v0
