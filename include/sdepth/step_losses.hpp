// SPDX-License-Identifier: MIT
// What one optimiser step tells: its losses, the load of experts and the use of depth slots, from the sums that a
// backend keeps. Rank 6.
#pragma once

#include <cstddef>
#include <type_traits>
#include <vector>

#include "sdepth/depth_mass.hpp"
#include "sdepth/expert_load.hpp"
#include "sdepth/plan.hpp"

namespace sdepth::inline v0 {

/// What one optimiser step divides by; over all micro-batches (and ranks) of the step.
struct step_totals {
    long long targets = 0;  ///< targets that are not negative
    long long rows = 0;     ///< real tokens
};

/// Losses of a step. The language loss and every auxiliary loss stand apart.
struct step_losses {
    double language = 0;          ///< nats a target
    double routing = 0;           ///< mean over sparse layers and rows
    double weighted_routing = 0;  ///< what of it enters the gradients
    double balance = 0;           ///< of experts, mean over the layers that have one; 1 = even
    double router_z = 0;          ///< mean over expert layers
    double weighted_experts = 0;  ///< what of the two enters the gradients
    double gradient_norm = 0;     ///< before clipping
    std::vector<expert_load> experts;

    /// What the gradients are of.
    double total() const { return language + weighted_routing + weighted_experts; }
};

namespace detail {

/// The sums of model M, copied from the memory of a backend.
template <class M>
class host_sums {
  public:
    template <class B>
    host_sums(B& backend, const step_sums<M>& from) : room_(static_cast<std::size_t>(step_sums_bytes<M>)) {
        backend.from_device(room_.data(), from.loss, room_.size());
        carver take(room_.data());
        at_.carve(take);
    }
    double language() const { return *at_.loss; }
    step_losses losses(const step_totals& totals) const {
        step_losses sum;
        sum.language = *at_.loss / static_cast<double>(totals.targets);
        add_routing(sum, totals);
        add_experts(sum, totals);
        sum.experts = expert_loads();
        return sum;
    }
    std::vector<expert_load> expert_loads() const {
        std::vector<expert_load> all;
        for_each_expert_layer([&]<class F>(std::type_identity<F>, std::size_t r, long long i, long long at) {
            expert_load& layer = all.emplace_back();
            const long long* counts = at_.expert_counts + 3 * at;
            const long long* load = at_.expert_load + experts_before[r].experts + i * F::experts;
            layer.layer = M::runs[r].first + i;
            layer.load.assign(load, load + F::experts);
            layer.rows = counts[0];
            layer.dropped = counts[1];
            layer.moved = counts[2];
            layer.entropy = counts[0] > 0 ? at_.expert_sums[3 * at + 2] / static_cast<double>(counts[0]) : 0;
        });
        return all;
    }
    std::vector<depth_mass> depth_masses() const {
        std::vector<depth_mass> all;
        for (std::size_t r = 0; r < M::runs.size(); ++r) {
            visit_type(typename M::kinds{}, M::runs[r].kind, [&]<class L>(std::type_identity<L>) {
                if constexpr (measures_depth_mass<L>()) {
                    for (long long i = 0; i < M::runs[r].times; ++i) {
                        const double* sums = at_.depth_mass + (depth.before[r].measured + i) * mass_numbers;
                        all.emplace_back(M::runs[r].first + i, std::vector<double>(sums, sums + mass_numbers));
                    }
                }
            });
        }
        return all;
    }

  private:
    void add_routing(step_losses& sum, const step_totals& totals) const {
        for (std::size_t r = 0; r < M::runs.size(); ++r) {
            visit_type(typename M::kinds{}, M::runs[r].kind, [&]<class L>(std::type_identity<L>) {
                if constexpr (layer_pass<L>::is_sparse) {
                    for (long long i = 0; i < M::runs[r].times; ++i) {
                        const double mean = at_.route_loss[sparse_before[r] + i] /
                                            (static_cast<double>(sparse_layers<M>) * static_cast<double>(totals.rows));
                        sum.routing += mean;
                        sum.weighted_routing += layer_pass<L>::policy.loss_weight * mean;
                    }
                }
            });
        }
    }
    void add_experts(step_losses& sum, const step_totals& totals) const {
        const auto rows = static_cast<double>(totals.rows);
        for_each_expert_layer([&]<class F>(std::type_identity<F>, std::size_t, long long, long long at) {
            const double* sums = at_.expert_sums + 3 * at;
            const double z = sums[1] / (rows * static_cast<double>(expert_layers<M>));
            sum.router_z += z;
            sum.weighted_experts += F::policy.z_loss_weight * z;
            if constexpr (F::policy.loss != balance::none) {
                const double mean = sums[0] / (rows * static_cast<double>(experts_before.back().balanced));
                sum.balance += mean;
                sum.weighted_experts += F::policy.loss_weight * mean;
            }
        });
    }

    static constexpr auto sparse_before = detail::sparse_layers_before<M>();
    static constexpr auto experts_before = detail::experts_before<M>();
    static constexpr auto depth = detail::depth_places_of<M>;
    static constexpr long long mass_numbers = detail::depth_mass_numbers<M>();

    // Calls f(type of the feed-forward pass, run, layer of the run, number of the expert layer) for each owner.
    template <class F>
    static void for_each_expert_layer(F f) {
        for (std::size_t r = 0; r < M::runs.size(); ++r) {
            if (M::runs[r].weights != static_cast<int>(r)) continue;
            visit_type(typename M::kinds{}, M::runs[r].kind, [&]<class L>(std::type_identity<L>) {
                using ffn = layer_ffn<L>;
                if constexpr (ffn::experts > 0) {
                    for (long long i = 0; i < M::runs[r].times; ++i) {
                        f(std::type_identity<ffn>{}, r, i, experts_before[r].layers + i);
                    }
                }
            });
        }
    }

    std::vector<std::byte> room_;
    step_sums<M> at_;
};

}  // namespace detail

}  // namespace sdepth::inline v0
