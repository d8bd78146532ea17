// SPDX-License-Identifier: MIT
// What stands before each run of a model: sparse layers, experts, depth slots. Buffers for all layers of a kind are
// indexed by it. Rank 5.
#pragma once

#include <array>
#include <cstddef>
#include <type_traits>

#include "sdepth/passes/layer_kind.hpp"

namespace sdepth::inline v0 {

namespace detail {

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
inline constexpr auto sparse_layers = detail::unless_broken<M>([]<class Good>(std::type_identity<Good>) {
    return detail::sparse_layers_before<Good>().back();
});
/// Expert layers of model M, as it executes them.
template <class M>
inline constexpr auto expert_layers = detail::unless_broken<M>([]<class Good>(std::type_identity<Good>) {
    return detail::experts_before<Good>().back().layers;
});

/// Depth slots of one position that layers of model M read: what a run has memory for. At most `state::depth_slots`.
template <class M>
inline constexpr auto stored_slots = detail::unless_broken<M>([]<class Good>(std::type_identity<Good>) {
    return detail::depth_places_of<Good>.stored;
});

}  // namespace sdepth::inline v0
