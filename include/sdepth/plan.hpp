// SPDX-License-Identifier: MIT
// What a run of a model on a backend needs in memory, to the byte, as constants. Rank 5.
//
// Every number comes from the carving that hands out the pointers at run time, so the plan cannot promise anything else
// than what is taken. A layer without passes, or a backend without a type, makes the plan ill-formed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <type_traits>

#include "sdepth/carve.hpp"
#include "sdepth/dims.hpp"
#include "sdepth/memory_layout.hpp"
#include "sdepth/passes/layer.hpp"
#include "sdepth/tensor_table.hpp"

namespace sdepth::inline v0 {

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
        parameter_memory<M, B>{}.carve(count_only, R.moments);
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
    /// What evaluation needs in place of the two above: a record of each sparse layer, then one layer that may execute
    /// every row.
    static constexpr long long each_record_bytes = [] {
        carver count_only;
        routing_record<B>{}.carve(count_only, R);
        return count_only.bytes();
    }();
    static constexpr long long record_bytes = (count(sparse_layers<M>) * count(each_record_bytes)).value();
    static constexpr long long evaluation_bytes = plan_of::most_of(
        [](layer_bytes b) { return (count(b.kept) + count(b.shared)).value(); }, selection_rule::threshold);

    static constexpr long long layer_region_bytes = std::max((count(saved_bytes) + count(scratch_bytes)).value(),
                                                             (count(record_bytes) + count(evaluation_bytes)).value());
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
    static constexpr inert_number each_record_bytes{}, record_bytes{}, slot_bytes{}, layer_region_bytes{},
        workspace_bytes{}, peak_bytes{};
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
