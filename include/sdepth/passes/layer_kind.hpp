// SPDX-License-Identifier: MIT
// What the passes of a layer of each kind are, as constants: its parts, how many rows it executes, which matrices it
// writes, how its routers are read. Rank 5.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "sdepth/layers/sparse.hpp"
#include "sdepth/ops/route.hpp"
#include "sdepth/passes/block.hpp"

namespace sdepth::inline v0 {

template <class L>
struct layer_pass {
    using block = block_pass<L>;
    static constexpr bool is_sparse = false;
    static constexpr bool full_keys = false;
    static constexpr sparse_policy policy{.gate = gate_form::none, .scale = false, .bias = false};
    static constexpr long long sparsity = 1;
};
template <long long K, class L, sparse_policy P>
struct layer_pass<Sparse<K, L, P>> {
    using block = block_pass<L>;
    static constexpr bool is_sparse = true;
    static constexpr sparse_policy policy = P;
    static constexpr bool full_keys = policy.keys == key_scope::full;
    static constexpr long long sparsity = K;
};

namespace detail {

template <class L>
struct passes_of {
    static constexpr bool exist = requires { sizeof(block_pass<L>); };
};
template <class Mixer, class Ffn, block_policy P>
struct passes_of<Block<Mixer, Ffn, P>> {
    static constexpr bool exist = requires { sizeof(mixer_pass<Mixer>); }
    &&requires { sizeof(ffn_pass<Ffn>); };
};
template <long long K, class L, sparse_policy P>
struct passes_of<Sparse<K, L, P>> : passes_of<L> {};

}  // namespace detail

/// Whether a layer can be run, not only counted: its mixer and feed-forward part have passes. A layer of the user's has
/// them if he specialises `block_pass` for it.
template <class L>
concept runnable = detail::passes_of<L>::exist;

namespace detail {

template <class L>
struct ffn_of_layer {
    using type = ffn_pass<None>;
};
template <class L>
requires runnable<L> && requires { typename layer_pass<L>::block::ffn_part; }
struct ffn_of_layer<L> {
    using type = typename layer_pass<L>::block::ffn_part;
};

}  // namespace detail

/// Passes of the layer's feed-forward part; that of `None` where it has none.
template <class L>
using layer_ffn = typename detail::ffn_of_layer<L>::type;

namespace detail {

template <class L>
struct mixer_of_layer {
    using type = mixer_pass<None>;
};
template <class L>
requires runnable<L> && requires { typename layer_pass<L>::block::mixer_part; }
struct mixer_of_layer<L> {
    using type = typename layer_pass<L>::block::mixer_part;
};

}  // namespace detail

/// Passes of the layer's mixer; that of `None` where it has none.
template <class L>
using layer_mixer = typename detail::mixer_of_layer<L>::type;

/// Depth slots that a layer of kind L sees of `written` ones.
template <class L>
constexpr slot_ranges slots_seen_by([[maybe_unused]] long long written) {
    if constexpr (requires { layer_mixer<L>::seen(written); }) {
        return layer_mixer<L>::seen(written);
    } else {
        return {};
    }
}
/// Whether a layer of kind L can say which share of its attention goes to slots.
template <class L>
constexpr bool measures_depth_mass() {
    if constexpr (requires { layer_mixer<L>::measures_mass; }) {
        return layer_mixer<L>::measures_mass;
    } else {
        return false;
    }
}

/// Rows of one sequence that a layer of kind L executes at most.
template <class L>
constexpr int row_capacity(selection_rule rule, int seq, int max_documents) {
    using pass = layer_pass<L>;
    if (!pass::is_sparse || rule == selection_rule::threshold) return seq;
    const long long top = ceil_div(seq, pass::sparsity);
    const long long most = pass::policy.scope == selection_scope::document ? top + max_documents : top;
    return static_cast<int>(most < seq ? most : seq);
}

/// Rows a sequence that an evaluation of a sparse layer L may make room for, rising: close to each other about 1/K of
/// the sequence, as many as a causal rule takes, then the double of the one before up to all.
struct room_steps {
    std::array<int, 40> rows{};
    int size = 0;
};
template <class L>
constexpr room_steps rooms_of(int seq) {
    room_steps out;
    const auto add = [&](long long quarters) {
        const long long needed = ceil_div(quarters * seq, 4 * layer_pass<L>::sparsity);
        const int rows = needed < seq ? static_cast<int>(needed) : seq;
        if (out.size == 0 || out.rows[static_cast<std::size_t>(out.size) - 1] < rows)
            out.rows[static_cast<std::size_t>(out.size++)] = rows;
    };
    for (const long long quarters : {2, 3, 4, 5, 6}) add(quarters);
    for (long long quarters = 8; out.rows[static_cast<std::size_t>(out.size) - 1] < seq; quarters *= 2) add(quarters);
    return out;
}

/// Whether a row's logits are found once a version in a run of `times` layers L: where more than one router reads it.
template <class L>
constexpr bool reads_versions(long long times) {
    return layer_pass<L>::is_sparse && times > 1;
}
/// Whether the gradients of routers are gathered by version of a row in a run of `times` layers L: where more than one
/// router reads a version, and one gradient goes to weights and rows.
template <class L>
constexpr bool gathers_versions(long long times) {
    return reads_versions<L>(times) && !layer_pass<L>::policy.detach;
}

/// Whether the backward of a layer of kind L makes the gradient of each of its matrices by one product, as the passes
/// of its parts say by a list `written_matrices`: the first of a step then writes it, and nobody has to clear it
/// before.
template <class L>
constexpr bool writes_matrices() {
    using block = typename layer_pass<L>::block;
    if constexpr (requires {
                      block::mixer_part::written_matrices;
                      block::ffn_part::written_matrices;
                  }) {
        return true;
    } else {
        return false;
    }
}
/// Whether this tensor of a layer of kind L is one of those matrices.
template <class L>
constexpr bool writes_matrix([[maybe_unused]] std::string_view name) {
    if constexpr (writes_matrices<L>()) {
        using block = typename layer_pass<L>::block;
        for (const std::string_view of : block::mixer_part::written_matrices)
            if (of == name) return true;
        for (const std::string_view of : block::ffn_part::written_matrices)
            if (of == name) return true;
    }
    return false;
}
/// Whether the lists leave out no matrix, and have nothing else: the matrices of a layer are Muon's tensors.
template <class L>
constexpr bool writes_all_matrices(const Dims& d) {
    if (!writes_matrices<L>()) return true;
    const tensor_rows rows = L::tensors(d);
    for (int i = 0; i < rows.size; ++i)
        if ((rows.items[i].group == update_group::muon) != writes_matrix<L>(rows.items[i].name)) return false;
    return true;
}

/// Whether the token-choice bias clears before layer L, the sparse layer of that index if it is one: at anchors, and
/// every so many sparse layers where the policy says so.
template <class L>
constexpr bool clears_bias(long long sparse_index) {
    if constexpr (layer_pass<L>::is_sparse) {
        constexpr long long every = layer_pass<L>::policy.clear_every;
        if constexpr (every > 0) {
            return sparse_index % every == 0;
        } else {
            return false;
        }
    } else {
        return L::has_mixer && L::has_ffn;
    }
}

}  // namespace sdepth::inline v0
