// SPDX-License-Identifier: MIT
// The update of a model's parameters, once for each tensor of a run of layers: clipping, optimiser, tracked cuts,
// experts' biases; and what a step starts from. Rank 6.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include "sdepth/memory_layout.hpp"
#include "sdepth/ops/experts.hpp"
#include "sdepth/ops/route.hpp"
#include "sdepth/ops/update.hpp"
#include "sdepth/passes/layer_kind.hpp"
#include "sdepth/run_places.hpp"
#include "sdepth/step.hpp"
#include "sdepth/tensor_table.hpp"

namespace sdepth::inline v0 {

/// The parameters of model M on backend B, in the memory of run R.
template <class M, class B, Run R>
class parameter_update {
  public:
    parameter_update(B& backend, const parameter_memory<M, B>& parameters, const batch_memory<M, B>& batch)
        : backend_(backend), parameters_(parameters), batch_(batch) {}

    /// Everything follows the gradients and sums of the step; the sums go to batch_memory::last, and both start again.
    void run(const update_settings& settings) const {
        backend_.squares(
            {.count = tensor_table<M>.elements, .grad = parameters_.gradients, .sum = batch_.sums.squares});
        backend_.begin_update({.beta1 = settings.beta1,
                               .beta2 = settings.beta2,
                               .clip = settings.clip,
                               .inputs = batch_.inputs,
                               .squares = batch_.sums.squares,
                               .loss = batch_.sums.loss,
                               .scalars = batch_.scalars});
        for (const table_row& row : tensor_table<M>.rows) {
            if (row.tensor.trained) update_tensors(row, settings);
        }
        for (std::size_t r = 0; r < M::runs.size(); ++r) {
            if (M::runs[r].weights != static_cast<int>(r)) continue;
            track_cuts(r);
            steer_experts(r);
        }
        backend_.copy(batch_.last.loss, batch_.sums.loss, static_cast<std::size_t>(step_sums_bytes<M>));
        restart();
    }
    /// Gradients and sums of a step from zero; but not the gradients that its first micro-batch writes.
    void restart() const {
        clear_gradients();
        clear_sums(batch_.sums);
    }
    void clear_sums(const step_sums<M>& sums) const {
        backend_.zero(sums.loss, static_cast<std::size_t>(step_sums_bytes<M>));
    }

  private:
    // Whether the first micro-batch of a step writes the gradient of this tensor, and does not add to it.
    static constexpr bool is_written(const table_row& row) {
        bool written = false;
        for (std::size_t r = 0; r < M::runs.size(); ++r) {
            if (M::runs[r].first != row.first_layer) continue;
            visit_type(typename M::kinds{}, M::runs[r].kind,
                       [&]<class L>(std::type_identity<L>) { written = writes_matrix<L>(row.tensor.name); });
        }
        return written;
    }
    void clear_gradients() const {
        for (const table_row& row : tensor_table<M>.rows) {
            if (is_written(row)) continue;
            using number = typename B::precision::gradient;
            const long long elements = row.tensor.elements().value();  // the last layer's lie lowest
            backend_.zero_rows(parameters_.gradients + mirrored<M>(row.offset_of(row.layers - 1), elements),
                               static_cast<std::size_t>(elements) * sizeof(number),
                               static_cast<std::size_t>(row.stride) * sizeof(number),
                               static_cast<std::size_t>(row.layers));
        }
    }
    // A tensor of all layers of its run.
    void update_tensors(const table_row& row, const update_settings& s) const {
        const long long elements = row.tensor.elements().value();
        if (s.kind == optimiser::muon && row.tensor.group == update_group::muon) return update_matrices(row, s);
        const moment_place second = second_moments<M>(R.moments, row);
        backend_.adamw({.layers = row.layers,
                        .count = elements,
                        .stride = row.stride,
                        .grad_stride = -row.stride,
                        .second_stride = second.stride,
                        .beta1 = s.beta1,
                        .beta2 = s.beta2,
                        .epsilon = s.epsilon,
                        .decay = row.tensor.decays ? s.decay : 0,
                        .share = row.tensor.rate,
                        .scalars = batch_.scalars,
                        .master = parameters_.master + row.offset,
                        .weight = parameters_.copy_at(row.offset),
                        .grad = parameters_.gradients + mirrored<M>(row.offset, elements),
                        .first = parameters_.first + row.offset,
                        .second = parameters_.second + second.offset});
    }
    // Each logical matrix by itself, however they are stored: a tensor of parts part by part, copy by copy.
    void update_matrices(const table_row& row, const update_settings& s) const {
        const tensor_row& tensor = row.tensor;
        tensor.for_each_part([&](long long first, long long rows) {
            if (rows == tensor.rows) return update_matrix(row, 0, rows, tensor.copies, s);
            for (long long copy = 0; copy < tensor.copies; ++copy) {
                update_matrix(row, (copy * tensor.rows + first) * tensor.cols, rows, 1, s);
            }
        });
    }
    // `matrices` of `rows` rows in each layer, from element `from` of the tensor on.
    void update_matrix(const table_row& row, long long from, long long rows, long long matrices,
                       const update_settings& s) const {
        const long long all = row.layers * matrices, place = row.offset + from;
        const auto* grad = parameters_.gradients + mirrored<M>(row.offset, row.tensor.elements().value());
        backend_.muon({.layers = row.layers,
                       .matrices = matrices,
                       .stride = row.stride,
                       .grad_stride = -row.stride,
                       .rows = static_cast<int>(rows),
                       .cols = static_cast<int>(row.tensor.cols),
                       .momentum = s.momentum,
                       .decay = row.tensor.decays ? s.decay : 0,
                       .match = s.muon_match,
                       .scalars = batch_.scalars,
                       .master = parameters_.master + place,
                       .weight = parameters_.copy_at(place),
                       .grad = grad + from,
                       .first = parameters_.first + place,
                       .scratch = parameters_.muon,
                       .together = all < B::muon_together ? static_cast<int>(all) : B::muon_together});
    }
    void track_cuts(std::size_t r) const {
        visit_type(typename M::kinds{}, M::runs[r].kind, [&]<class L>(std::type_identity<L>) {
            using pass = layer_pass<L>;
            if constexpr (pass::is_sparse && pass::policy.cut == threshold::tracked) {
                constexpr row_layout layout = layer_layout<L, M::dims>;
                backend_.track_cut(
                    {.layers = M::runs[r].times,
                     .stride = layout.stride,
                     .rate = pass::policy.cut_rate,
                     .cut_sum = batch_.sums.cut + sparse_before[r],
                     .cut_groups = batch_.sums.cut_groups + sparse_before[r],
                     .cut = parameters_.master + tensor_table<M>.run_offsets[r] + layout.place("router.cut", 0).offset,
                     .finite = &batch_.scalars->finite});
            }
        });
    }

    void steer_experts(std::size_t r) const {
        visit_type(typename M::kinds{}, M::runs[r].kind,
                   [&]<class L>(std::type_identity<L>) { steer_experts_of<L>(r); });
    }
    // Not in the lambda: there nvcc wants the operation of every backend.
    template <class L>
    void steer_experts_of([[maybe_unused]] std::size_t r) const {
        using ffn = layer_ffn<L>;
        if constexpr (ffn::experts > 0) {
            if constexpr (ffn::policy.steering) {
                constexpr row_layout layout = layer_layout<L, M::dims>;
                backend_.steer_experts({.layers = M::runs[r].times,
                                        .stride = layout.stride,
                                        .experts = static_cast<int>(ffn::experts),
                                        .step = ffn::policy.steering_step,
                                        .load = batch_.sums.expert_load + experts_before[r].experts,
                                        .bias = parameters_.master + tensor_table<M>.run_offsets[r] +
                                                layout.place("mlp.router.bias", 0).offset,
                                        .finite = &batch_.scalars->finite});
            }
        }
    }

    static constexpr auto sparse_before = detail::sparse_layers_before<M>();
    static constexpr auto experts_before = detail::experts_before<M>();

    B& backend_;
    const parameter_memory<M, B>& parameters_;
    const batch_memory<M, B>& batch_;
};

}  // namespace sdepth::inline v0
