// SPDX-License-Identifier: MIT
// The buffers of a model on a backend, each struct with the carving that hands out its pointers. Rank 5.
#pragma once

#include <cstdint>
#include <type_traits>
#include <vector>

#include "sdepth/carve.hpp"
#include "sdepth/dims.hpp"
#include "sdepth/ops/ends.hpp"
#include "sdepth/ops/update.hpp"
#include "sdepth/passes/layer.hpp"
#include "sdepth/run_places.hpp"
#include "sdepth/tensor_table.hpp"

namespace sdepth::inline v0 {

namespace detail {

// Rows of logits that exist at a time.
template <class B>
constexpr int logit_rows(const Run& r) {
    const long long rows = r.batch * r.seq;
    return static_cast<int>(rows < B::logit_rows ? rows : B::logit_rows);
}

}  // namespace detail

/// Where the second moments of a tensor lie: first layer, and from one layer to the next.
struct moment_place {
    long long offset = -1;  ///< -1: it has none
    long long stride = 0;
};

/// Second moments of a row of the tensor table, see Run::moments: for AdamW as the parameters lie, for Muon those of
/// the tensors that it leaves to AdamW, one after the other.
template <class M>
constexpr moment_place second_moments(optimiser kept, const table_row& row) {
    if (kept == optimiser::adamw) return {row.offset, row.stride};
    long long at = 0;
    for (const table_row& other : tensor_table<M>.rows) {
        if (other.tensor.group == update_group::muon) continue;
        const long long each = detail::padded(other.tensor.elements());
        if (other.offset == row.offset) return {at, each};
        at += other.layers * each;
    }
    return {};
}
/// How many there are, padding included.
template <class M>
constexpr long long second_moment_elements(optimiser kept) {
    if (kept == optimiser::adamw) return tensor_table<M>.elements;
    count all;
    for (const table_row& row : tensor_table<M>.rows)
        if (row.tensor.group != update_group::muon)
            all += count(row.layers) * count(detail::padded(row.tensor.elements()));
    return all.value();
}

/// Numbers of every parameter: weight, gradient, moments.
template <class M, class B>
struct parameter_memory {
    using weight_type = typename B::precision::weight;
    using master_type = typename B::precision::master;
    /// Whether matrices have a copy in a type of their own.
    static constexpr bool has_copies = !std::is_same_v<weight_type, master_type>;

    weight_type* weights = nullptr;  // what products read
    master_type* master = nullptr;   // what the optimiser changes; the same memory without copies
    typename B::precision::gradient* gradients = nullptr;
    typename B::precision::sum* first = nullptr;        // first moment, or momentum
    typename B::precision::sum* second = nullptr;       // second moment, see `second_moments`
    typename B::precision::activation* muon = nullptr;  // Muon's scratch

    constexpr void carve(carver& take, optimiser kept) {
        constexpr long long elements = tensor_table<M>.elements;
        carve_weights(take);
        take(gradients, elements);
        take(first, elements);
        take(second, second_moment_elements<M>(kept));
        long long most = 0;
        for (const table_row& row : tensor_table<M>.rows) {
            if (row.tensor.group != update_group::muon) continue;
            const long long matrices = row.layers * row.tensor.copies;
            const long long together = matrices < B::muon_together ? matrices : B::muon_together;
            row.tensor.for_each_part([&](long long, long long rows) {
                const long long needed = together * muon_scratch(rows, row.tensor.cols);
                most = needed > most ? needed : most;
            });
        }
        take(muon, most);
    }
    /// The weights alone: all that decoding needs.
    constexpr void carve_weights(carver& take) {
        take(weights, tensor_table<M>.elements);
        if constexpr (has_copies)
            take(master, tensor_table<M>.elements);
        else
            master = weights;
    }
    /// The copy of the parameter at `offset` that the optimiser has to write; null without copies.
    constexpr weight_type* copy_at(long long offset) const { return has_copies ? weights + offset : nullptr; }
    /// Sets parameters from numbers in host memory, copies included.
    template <class T>
    void store(B& backend, long long offset, const std::vector<T>& values) const {
        const auto elements = static_cast<long long>(values.size());
        const std::vector<master_type> exact(values.begin(), values.end());
        write(backend, master + offset, exact.data(), elements);
        if constexpr (has_copies) {
            const std::vector<weight_type> rounded(exact.begin(), exact.end());
            write(backend, weights + offset, rounded.data(), elements);
        }
    }
};

/// Sums over the micro-batches of a step, for its update and for the log.
template <class M>
struct step_sums {
    double* loss = nullptr;           // one number: sum of the language loss
    double* squares = nullptr;        // one number: of all gradients
    double* route_loss = nullptr;     // [sparse layers]
    double* cut = nullptr;            // [sparse layers]
    long long* cut_groups = nullptr;  // [sparse layers]
    // Statistics of expert layers, see ffn_step; passes of a loop share their owner's.
    long long* expert_load = nullptr;    // [experts of all layers]
    long long* expert_counts = nullptr;  // [expert layers, 3]
    double* expert_sums = nullptr;       // [expert layers, 3]
    double* depth_mass = nullptr;        // [layers that measure it, H + 2], see DepthMassArgs

    constexpr void carve(carver& take) {
        take(loss, 1);
        take(squares, 1);
        take(route_loss, sparse_layers<M>);
        take(cut, sparse_layers<M>);
        take(cut_groups, sparse_layers<M>);
        take(expert_load, detail::experts_before<M>().back().experts);
        take(expert_counts, 3 * expert_layers<M>);
        take(expert_sums, 3 * expert_layers<M>);
        take(depth_mass, detail::depth_places_of<M>.before.back().measured * detail::depth_mass_numbers<M>());
    }
};

/// Their size; they start at `loss`.
template <class M>
inline constexpr long long step_sums_bytes = [] {
    carver count_only;
    step_sums<M>{}.carve(count_only);
    return count_only.bytes();
}();

/// What one micro-batch occupies outside its layers.
template <class M, class B>
struct batch_memory {
    using activation = typename B::precision::activation;
    using sum = typename B::precision::sum;
    int* tokens = nullptr;              // [B, L]
    int* targets = nullptr;             // [B, L]
    int* documents = nullptr;           // [B, L]
    int* every_row = nullptr;           // [B, L]
    int* live = nullptr;                // [B]
    activation* x = nullptr;            // [B, L, d]
    activation* grad_x = nullptr;       // [B, L, d]
    activation* y = nullptr;            // [B, L, d], the normed last rows
    activation* grad_y = nullptr;       // [B, L, d]
    sum* rstd = nullptr;                // [B, L]
    sum* bias = nullptr;                // [B, L]
    activation* logits = nullptr;       // [chunk, logit_stride(V)]
    update_inputs* inputs = nullptr;    // one
    update_scalars* scalars = nullptr;  // one
    sum* route_grad = nullptr;          // [layers of the longest run that gathers, B, L], see run_routing
    int* route_later = nullptr;         // [B, L]
    sum* route_sums = nullptr;          // [parts, layers of that run, d]
    step_sums<M> sums;                  // of the step at work
    step_sums<M> last;                  // of the last finished one
    step_sums<M> evaluated;             // of the evaluation at work, so that a step goes on after it

    constexpr void carve(carver& take, const Run& r) {
        const long long rows = r.batch * r.seq;
        constexpr long long width = M::dims.width;
        take(tokens, rows);
        take(targets, rows);
        take(documents, rows);
        take(every_row, rows);
        take(live, r.batch);
        take(x, rows * width);
        take(grad_x, rows * width);
        take(y, rows * width);
        take(grad_y, rows * width);
        take(rstd, rows);
        take(bias, rows);
        take(logits, detail::logit_rows<B>(r) * logit_stride(M::dims.vocab));
        constexpr long long longest = detail::longest_gathering<M>();
        take(route_grad, longest * rows);
        take(route_later, longest > 0 ? rows : 0);
        take(route_sums, B::route_parts * longest * width);
        take(inputs, 1);
        take(scalars, 1);
        sums.carve(take);
        last.carve(take);
        evaluated.carve(take);
    }
};

/// Depth slots of one micro-batch: written by earlier layers, read at the same position by later ones. They are kept
/// from forward to backward whatever the layers recompute; in decoding they last for one pass.
template <class M, class B>
struct slot_memory {
    typename B::precision::activation* slots = nullptr;  // [B, L, S, Hkv, 2, h]
    typename B::precision::sum* sums = nullptr;          // the same, gradients
    std::uint8_t* mask = nullptr;                        // [B, L, S], 1 = written
    typename B::precision::sum* lse = nullptr;           // [B, L, H], room of the statistics

    static constexpr long long count = stored_slots<M>;

    constexpr void carve(carver& take, const Run& r, bool training) {
        if (count == 0) return;
        const long long rows = r.batch * r.seq;
        const long long elements = rows * count * 2 * M::dims.kv() * M::dims.head_dim;
        take(slots, elements);
        if (training) take(sums, elements);
        take(mask, rows * count);
        take(lse, rows * M::dims.heads);
    }
    /// As the layer sees them before which `written` slots were written.
    layer_slots<B> seen_after(long long written) const {
        return {.memory = slots,
                .sums = sums,
                .mask = mask,
                .slots = static_cast<int>(count),
                .written = static_cast<int>(written),
                .lse_room = lse};
    }
};

/// What an evaluation leaves behind of a sparse layer: whoever wants to see its choice looks after the pass.
template <class B>
struct routing_record {
    int* ids = nullptr;                            // [B, L], chosen rows, of which sequence b has live[b]
    int* live = nullptr;                           // [B]
    typename B::precision::sum* biased = nullptr;  // [B, L], u

    constexpr void carve(carver& take, const Run& r) {
        take(ids, r.batch * r.seq);
        take(live, r.batch);
        take(biased, r.batch * r.seq);
    }
};

/// Buffers of one layer at work: what it keeps, then what all layers share in turn.
template <class L, class B>
struct layer_memory {
    layer_saved<L, B> saved;
    layer_scratch<L, B> scratch;

    constexpr void carve(carver& keep, carver& shared, selection_rule rule, const Dims& d, const Run& r) {
        const int capacity = row_capacity<L>(rule, static_cast<int>(r.seq), static_cast<int>(r.max_documents));
        const extents e{static_cast<int>(r.batch), static_cast<int>(r.seq), capacity};
        saved.carve(keep, shared, r.replay, d, e);
        scratch.carve(shared, d, e);
    }
};

}  // namespace sdepth::inline v0
