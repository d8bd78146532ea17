// SPDX-License-Identifier: MIT
// What a run of a model on a backend needs in memory, to the byte, as constants. Rank 5.
//
// Every number comes from the carving that hands out the pointers at run time, so the plan cannot promise anything else
// than what is taken. A layer without passes, or a backend without a type, makes the plan ill-formed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "sdepth/carve.hpp"
#include "sdepth/dims.hpp"
#include "sdepth/ops/ends.hpp"
#include "sdepth/ops/update.hpp"
#include "sdepth/passes/layer.hpp"
#include "sdepth/tensor_table.hpp"

namespace sdepth::inline v0 {

namespace detail {

// Rows of logits that exist at a time.
template <class B>
constexpr int logit_rows(const Run& r) {
    const long long rows = r.batch * r.seq;
    return static_cast<int>(rows < B::logit_rows ? rows : B::logit_rows);
}

// Sparse layers before each run of the model; the last element is the number of all.
template <class M>
constexpr std::array<long long, run_count<M> + 1> sparse_layers_before() {
    std::array<long long, run_count<M> + 1> before{};
    for (std::size_t r = 0; r != run_count<M>; ++r) {
        before[r + 1] = before[r];
        visit_type(typename M::kinds{}, M::runs[r].kind, [&]<class L>(std::type_identity<L>) {
            if (layer_pass<L>::is_sparse) before[r + 1] += M::runs[r].times;
        });
    }
    return before;
}

// Expert layers before each run of the model, their experts, and those with a balance loss; the last element is for
// all.
struct expert_place {
    long long layers = 0;
    long long experts = 0;
    long long balanced = 0;
};
template <class M>
constexpr std::array<expert_place, run_count<M> + 1> experts_before() {
    std::array<expert_place, run_count<M> + 1> before{};
    for (std::size_t r = 0; r != run_count<M>; ++r) {
        before[r + 1] = before[r];
        visit_type(typename M::kinds{}, M::runs[r].kind, [&]<class L>(std::type_identity<L>) {
            using ffn = layer_ffn<L>;
            if constexpr (ffn::experts > 0) {
                before[r + 1].layers += M::runs[r].times;
                before[r + 1].experts += M::runs[r].times * ffn::experts;
                if (ffn::policy.loss != balance::none) before[r + 1].balanced += M::runs[r].times;
            }
        });
    }
    return before;
}

// Depth slots written before each run of the model, and the layers before it that say how much they read of them; the
// last element is for all. `stored`: slots from there on are read by nobody.
struct depth_place {
    long long written = 0;
    long long measured = 0;
};
template <class M>
struct depth_places {
    std::array<depth_place, run_count<M> + 1> before{};
    long long stored = 0;
};
template <class M>
constexpr depth_places<M> find_depth_places() {
    depth_places<M> places{};
    for (std::size_t r = 0; r != run_count<M>; ++r) {
        const long long times = M::runs[r].times;
        depth_place& next = places.before[r + 1] = places.before[r];
        visit_type(typename M::kinds{}, M::runs[r].kind, [&]<class L>(std::type_identity<L>) {
            const long long each = L::state(M::dims).slots_written;
            const slot_ranges last = slots_seen_by<L>(next.written + (times - 1) * each);
            for (int part = 0; part < 2; ++part)
                if (last.size(part) > 0 && last.end[part] > places.stored) places.stored = last.end[part];
            next.written += times * each;
            if (measures_depth_mass<L>()) next.measured += times;
        });
    }
    return places;
}
template <class M>
inline constexpr depth_places<M> depth_places_of = find_depth_places<M>();

template <class M>
constexpr long long depth_mass_numbers() {
    return M::valid ? M::dims.heads + 2 : 0;
}

// Layers of the longest run whose routers' gradients are gathered by version.
template <class M>
constexpr long long longest_gathering() {
    long long most = 0;
    for (const layer_run& r : M::runs) {
        visit_type(typename M::kinds{}, r.kind, [&]<class L>(std::type_identity<L>) {
            if (gathers_versions<L>(r.times) && r.times > most) most = r.times;
        });
    }
    return most;
}

}  // namespace detail

/// Layers of model M that route.
template <class M>
inline constexpr auto sparse_layers = detail::unless_broken<M>([] { return detail::sparse_layers_before<M>().back(); });
/// Expert layers of model M, as it executes them.
template <class M>
inline constexpr auto expert_layers = detail::unless_broken<M>([] {
    return detail::experts_before<M>().back().layers;
});

/// Depth slots of one position that layers of model M read: what a run has memory for. At most `state::depth_slots`.
template <class M>
inline constexpr auto stored_slots = detail::unless_broken<M>([] { return detail::depth_places_of<M>.stored; });

/// Numbers of every parameter: weight, gradient, two moments.
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
    typename B::precision::sum* second = nullptr;       // second moment
    typename B::precision::activation* muon = nullptr;  // Muon's scratch

    constexpr void carve(carver& take) {
        constexpr long long elements = tensor_table<M>.elements;
        carve_weights(take);
        take(gradients, elements);
        take(first, elements);
        take(second, elements);
        long long most = 0;
        for (const table_row& row : tensor_table<M>.rows) {
            if (row.tensor.group != update_group::muon) continue;
            const long long matrices = row.layers * row.tensor.copies;
            const long long together = matrices < B::muon_together ? matrices : B::muon_together;
            const long long needed = together * muon_scratch(row.tensor.rows, row.tensor.cols);
            most = needed > most ? needed : most;
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

namespace detail {

// One kind at a time, so that the compiler names the layer.
template <class L>
constexpr bool report_runnable() {
    static_assert(runnable<L>, "sdepth: this layer can be counted but not run: it has no passes; see passes/layer.hpp");
    return true;
}
template <class... Ls>
constexpr bool report_all_runnable(type_list<Ls...>) {
    return (true && ... && report_runnable<Ls>());
}
template <class... Ls>
constexpr bool all_runnable(type_list<Ls...>) {
    return (true && ... && runnable<Ls>);
}

/// Whether the tokens of a micro-batch times what any layer has of anything fit 63 bits, so that no buffer's size
/// overflows before it is added up.
template <class M>
constexpr bool buffers_fit(const Run& r) {
    bool fit = true;
    for (const layer_run& run : M::runs) {
        visit_type(typename M::kinds{}, run.kind, [&]<class L>(std::type_identity<L>) {
            const count most = count(layer_layout<L, M::dims>.stride) + count(L::state(M::dims).recurrent);
            fit = fit && !(count(r.batch) * count(r.seq) * most * 16).overflowed();
        });
    }
    return fit;
}

// The plan of a model and run that are known to be good.
template <class M, class B, Run R>
struct plan_of {
    static constexpr long long parameter_bytes = [] {
        carver count_only;
        parameter_memory<M, B>{}.carve(count_only);
        return count_only.bytes();
    }();
    static constexpr long long batch_bytes = [] {
        carver count_only;
        batch_memory<M, B>{}.carve(count_only, R);
        return count_only.bytes();
    }();

    /// Depth slots with their gradients.
    static constexpr long long slot_bytes = [] {
        carver count_only;
        slot_memory<M, B>{}.carve(count_only, R, true);
        return count_only.bytes();
    }();

    struct layer_bytes {
        long long kept = 0;
        long long shared = 0;
    };
    template <class L>
    static constexpr layer_bytes layer(selection_rule rule) {
        carver keep, shared;
        layer_memory<L, B>{}.carve(keep, shared, rule, M::dims, R);
        return {keep.bytes(), shared.bytes()};
    }

    /// The largest over the layer kinds.
    template <class F>
    static constexpr long long most_of(F bytes, selection_rule rule) {
        long long most = 0;
        for (const layer_run& r : M::runs) {
            visit_type(typename M::kinds{}, r.kind, [&]<class L>(std::type_identity<L>) {
                const long long needed = bytes(layer<L>(rule));
                most = needed > most ? needed : most;
            });
        }
        return most;
    }

    /// What the layers keep from forward to backward.
    static constexpr long long saved_bytes = [] {
        count sum;
        for (const layer_run& r : M::runs) {
            visit_type(typename M::kinds{}, r.kind, [&]<class L>(std::type_identity<L>) {
                sum += count(r.times) * count(layer<L>(selection_rule::top).kept);
            });
        }
        return sum.value();
    }();
    /// What training's layers use in turn.
    static constexpr long long scratch_bytes =
        plan_of::most_of([](layer_bytes b) { return b.shared; }, selection_rule::top);
    /// What evaluation needs in place of the two above: one layer that may execute every row.
    static constexpr long long evaluation_bytes = plan_of::most_of(
        [](layer_bytes b) { return (count(b.kept) + count(b.shared)).value(); }, selection_rule::threshold);

    static constexpr long long layer_region_bytes =
        std::max((count(saved_bytes) + count(scratch_bytes)).value(), evaluation_bytes);
    /// What the backend's operations need beside their arguments.
    static constexpr long long workspace_bytes = B::workspace_bytes(M::dims, R);
    /// Everything. The arena allocates exactly this, once.
    static constexpr long long peak_bytes = (count(parameter_bytes) + count(batch_bytes) + count(slot_bytes) +
                                             count(layer_region_bytes) + count(workspace_bytes))
                                                .value();

    /// Start of each run's kept buffers in the layer region, first layer; layers follow at `layer<L>().kept`.
    static constexpr std::array<long long, M::runs.size()> saved_offsets = [] {
        std::array<long long, M::runs.size()> offsets{};
        count at;
        for (std::size_t r = 0; r < M::runs.size(); ++r) {
            offsets[r] = at.value();
            visit_type(typename M::kinds{}, M::runs[r].kind, [&]<class L>(std::type_identity<L>) {
                at += count(M::runs[r].times) * count(layer<L>(selection_rule::top).kept);
            });
        }
        return offsets;
    }();
};

// In place of a plan whose one error is reported.
struct inert_plan {
    static constexpr inert_number parameter_bytes{}, batch_bytes{}, saved_bytes{}, scratch_bytes{}, evaluation_bytes{};
    static constexpr inert_number slot_bytes{}, layer_region_bytes{}, workspace_bytes{}, peak_bytes{};
    static constexpr inert_list<long long> saved_offsets{};

    struct layer_bytes {
        inert_number kept, shared;
    };
    template <class L>
    static constexpr layer_bytes layer(selection_rule) {
        return {};
    }
};

template <class M, class B, Run R>
struct choose_plan {
    static constexpr auto choose() {
        if constexpr (!usable_in<M, evaluated(R)>()) {
            return inert_plan{};
        } else if constexpr (!report_all_runnable(typename M::kinds{}) || !all_runnable(typename M::kinds{})) {
            return inert_plan{};
        } else if constexpr (!accepted<require(buffers_fit<M>(R), rule::plan_fits).broken, R.batch, R.seq>()) {
            return inert_plan{};
        } else if constexpr (constexpr bool fits = plan_of<M, B, evaluated(R)>::peak_bytes != count::largest;
                             !accepted<require(fits, rule::plan_fits).broken, R.batch, R.seq>()) {
            return inert_plan{};
        } else {
            return plan_of<M, B, evaluated(R)>{};
        }
    }
    using type = decltype(choose());
};

}  // namespace detail

/// The memory of model M on backend B in run R. All sizes in bytes; each region starts at a multiple of 256.
template <class M, class B, Run R>
struct plan : detail::choose_plan<M, B, detail::evaluated(R)>::type {};

}  // namespace sdepth::inline v0
