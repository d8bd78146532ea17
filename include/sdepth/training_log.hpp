// SPDX-License-Identifier: MIT
// The lines that a training run writes to its log: one of a step, one of an evaluation. Rank 7.
#pragma once

#include <cstddef>
#include <iterator>
#include <span>
#include <string_view>
#include <vector>

#include "sdepth/evaluation.hpp"
#include "sdepth/log.hpp"
#include "sdepth/routing_statistics.hpp"
#include "sdepth/step_losses.hpp"

namespace sdepth::inline v0 {

/// What the run reports while it goes on, at the steps where losses are read.
struct progress {
    long long step = 0;  ///< steps done
    step_losses losses;
    double rate = 0;
    double tokens_per_second = 0;  ///< since the run began, evaluations and saves included
    double seconds_left = 0;       ///< at that rate
};

namespace detail {

// Adds what a log line says about expert layers, in order; nothing where there are none. `expert_load` joins the lists
// of all layers, `experts_of_layer` numbers each.
inline void append_loads(std::vector<json_log::member>& line, const std::vector<expert_load>& loads) {
    if (loads.empty()) return;
    std::vector<double> imbalance, entropy;
    std::vector<long long> layer, experts, load, dropped, moved;
    for (const expert_load& of : loads) {
        layer.push_back(of.layer);
        experts.push_back(std::ssize(of.load));
        load.insert(load.end(), of.load.begin(), of.load.end());
        imbalance.push_back(of.imbalance());
        entropy.push_back(of.entropy);
        dropped.push_back(of.dropped);
        moved.push_back(of.moved);
    }
    const auto list = [&]<class T>(std::string_view name, const std::vector<T>& of) {
        line.emplace_back(name, std::span<const T>(of));
    };
    list("expert_layer", layer);
    list("experts_of_layer", experts);
    list("expert_load", load);
    list("expert_imbalance", imbalance);
    list("expert_entropy", entropy);
    list("expert_dropped", dropped);
    list("expert_moved", moved);
}

// Adds what a log line says about depth attention, in order; nothing where there is none. `depth_mass_of_head` joins
// the lists of all layers, each as long as the model has query heads.
inline void append_masses(std::vector<json_log::member>& line, const std::vector<depth_mass>& masses) {
    if (masses.empty()) return;
    std::vector<long long> layer;
    std::vector<double> share, even, of_head;
    for (const depth_mass& of : masses) {
        layer.push_back(of.layer);
        share.push_back(of.share());
        even.push_back(of.share_if_even());
        for (std::size_t head = 0; head < of.heads(); ++head) of_head.push_back(of.share(head));
    }
    line.emplace_back("depth_layer", std::span<const long long>(layer));
    line.emplace_back("depth_mass", std::span<const double>(share));
    line.emplace_back("depth_mass_if_even", std::span<const double>(even));
    line.emplace_back("depth_mass_of_head", std::span<const double>(of_head));
}

// Line of the step that `now` tells of.
inline void write_line(json_log& log, const progress& now) {
    std::vector<json_log::member> line{{"step", now.step - 1},
                                       {"loss", now.losses.language},
                                       {"route_loss", now.losses.routing},
                                       {"gradient_norm", now.losses.gradient_norm},
                                       {"learning_rate", now.rate},
                                       {"tokens_per_second", now.tokens_per_second}};
    if (!now.losses.experts.empty()) {
        line.emplace_back("balance_loss", now.losses.balance);
        line.emplace_back("z_loss", now.losses.router_z);
        detail::append_loads(line, now.losses.experts);
    }
    log.write(line);
}

// Line of an evaluation of model M after `step` steps.
template <class M>
void write_line(json_log& log, long long step, const evaluation& result) {
    const route_report& causal = result.causal_route;
    constexpr independent_routing reference = independent_reference<M>();
    std::vector<json_log::member> line{
        {"step", step - 1},
        {"causal_loss", result.causal},
        {"top_loss", result.top},
        {"gap", result.gap()},
        {"held_out_tokens", result.tokens},
        {"agreement", result.top_route.agreement},
        {"chosen_disagreement", disagreement_among_chosen(result.top_route.agreement, reference.sparsity)},
        {"rate", causal.rate},
        {"coverage", causal.coverage},
        {"coverage_if_independent", reference.coverage()},
        {"jaccard", causal.jaccard},
        {"jaccard_if_independent", reference.jaccard()},
        {"updates", std::span<const double>(causal.updates)},
        {"rate_of_layer", std::span<const double>(causal.rate_of_layer)}};
    detail::append_loads(line, result.experts);
    detail::append_masses(line, result.depth);
    log.write(line);
}

}  // namespace detail

}  // namespace sdepth::inline v0
