// SPDX-License-Identifier: MIT
// Where every tensor of a model lies and what it is called: one row per tensor of a run, expanded per layer only at run
// time. Checkpoints, optimiser, initialiser and plan read it; no fact about a tensor is written twice. Rank 4.
#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "sdepth/model.hpp"

namespace sdepth::inline v0 {

/// Tensors start at multiples of this many elements, so that vector and bulk copies are aligned in every storage type.
inline constexpr long long tensor_alignment = 128;

namespace detail {

constexpr long long padded(count elements) {
    return (count(ceil_div(elements.value(), tensor_alignment)) * count(tensor_alignment)).value();
}

}  // namespace detail

/// Where a tensor lies.
struct tensor_place {
    long long offset = -1;  ///< elements from the start of a layer or region; -1: there is no such tensor
    long long elements = 0;
};

/// Offsets of one layer's tensors from the layer's start, in elements.
struct row_layout {
    tensor_rows rows;
    std::array<long long, static_cast<std::size_t>(tensor_rows::capacity)> offsets{};
    long long stride = 0;  ///< elements of the whole layer

    constexpr explicit row_layout(const tensor_rows& of) : rows(of) {
        for (int i = 0; i < rows.size; ++i) {
            offsets[static_cast<std::size_t>(i)] = stride;
            stride = (count(stride) + count(detail::padded(rows.items[i].elements()))).value();
        }
    }
    /// Place of the tensor of this name in a region where the layer starts at `start`; offset -1 if it has none.
    constexpr tensor_place place(std::string_view name, long long start) const {
        for (int i = 0; i < rows.size; ++i) {
            if (rows.items[i].name == name) {
                return {start + offsets[static_cast<std::size_t>(i)], rows.items[i].elements().value()};
            }
        }
        return {};
    }
};

/// Layout of a layer of kind L.
template <class L, Dims D>
inline constexpr row_layout layer_layout{L::tensors(D)};

/// One tensor of a run of layers, or of the model's ends.
struct table_row {
    tensor_row tensor{};
    long long first_layer = -1;  ///< -1: an end, whose name is complete
    long long layers = 1;
    long long offset = 0;  ///< elements from the region's start, first layer
    long long stride = 0;  ///< elements from layer to layer

    /// Elements from the region's start of layer `first_layer + i`.
    constexpr long long offset_of(long long i) const { return offset + i * stride; }
};

namespace detail {

template <class M>
constexpr long long count_rows() {
    long long rows = Ends::first(M::dims).size + Ends::last(M::dims).size;
    int index = 0;
    for (const layer_run& r : M::runs) {
        if (r.weights == index++) {
            visit_type(typename M::kinds{}, r.kind,
                       [&]<class L>(std::type_identity<L>) { rows += layer_layout<L, M::dims>.rows.size; });
        }
    }
    return rows;
}

template <class M>
struct table {
    std::array<table_row, static_cast<std::size_t>(count_rows<M>())> rows{};
    std::array<long long, run_count<M>> run_offsets{};  // start of each run's first layer
    long long first_end = 0;                            // start of the tensors before the layers
    long long last_end = 0;                             // start of the tensors after them
    long long elements = 0;                             // of the region, padding included

    constexpr table() {
        std::size_t filled = 0;
        const auto add = [&](const row_layout& layout, long long first_layer, long long layers, long long start) {
            for (int i = 0; i < layout.rows.size; ++i) {
                rows[filled++] = {layout.rows.items[i], first_layer, layers,
                                  start + layout.offsets[static_cast<std::size_t>(i)], layout.stride};
            }
        };
        const row_layout first{Ends::first(M::dims)};
        add(first, -1, 1, 0);
        elements = first.stride;
        for (std::size_t r = 0; r != run_count<M>; ++r) {
            const layer_run& of = M::runs[r];
            if (of.weights != static_cast<int>(r)) {
                run_offsets[r] = run_offsets[static_cast<std::size_t>(of.weights)];
                continue;
            }
            run_offsets[r] = elements;
            visit_type(typename M::kinds{}, of.kind, [&]<class L>(std::type_identity<L>) {
                add(layer_layout<L, M::dims>, of.first, of.times, elements);
                elements = (count(elements) + count(of.times) * count(layer_layout<L, M::dims>.stride)).value();
            });
        }
        last_end = elements;
        const row_layout last{Ends::last(M::dims)};
        add(last, -1, 1, elements);
        elements += last.stride;
    }
};

}  // namespace detail

namespace detail {

struct inert_table {
    inert_list<table_row> rows;
    inert_list<long long> run_offsets;
    inert_number first_end, last_end, elements;
};

}  // namespace detail

/// The table of model M. Tensors lie in order of execution; gradients use the mirrored offset (`mirrored`).
template <class M>
inline constexpr auto tensor_table = detail::unless_broken<M, detail::inert_table>(
    []<class Good>(std::type_identity<Good>) { return detail::table<Good>{}; });

/// Offset of a tensor in the gradient region: the reverse of the weights' order, so that gradients that are finished
/// together in the backward lie together.
template <class M>
constexpr long long mirrored(long long offset, long long elements) {
    return tensor_table<M>.elements - offset - detail::padded(elements);
}

/// Where the tensors of the model's ends lie in the weight region; a tied head is the embedding.
template <class M>
struct end_places {
    static constexpr Dims sizes = M::valid ? M::dims : Dims{};
    static constexpr row_layout first{Ends::first(sizes)};
    static constexpr row_layout last{Ends::last(sizes)};
    static constexpr tensor_place embedding = first.place("model.embed_tokens.weight", 0);
    static constexpr tensor_place norm = last.place("model.norm.weight", tensor_table<M>.last_end);
    static constexpr tensor_place head =
        M::dims.tied ? embedding : last.place("lm_head.weight", tensor_table<M>.last_end);
};

/// Full name of a tensor in a file: `model.layers.{i}.` and the row's name, `{e}` replaced by the copy's number.
inline std::string tensor_name(const table_row& row, long long i, long long copy) {
    std::string name =
        row.first_layer < 0 ? std::string() : "model.layers." + std::to_string(row.first_layer + i) + ".";
    name += row.tensor.name;
    if (const auto at = name.find("{e}"); at != std::string::npos) name.replace(at, 3, std::to_string(copy));
    return name;
}

/// One tensor as a file holds it.
struct file_tensor {
    std::string name;
    const table_row* row = nullptr;
    long long offset = 0;    ///< of its first element in the weight region
    long long elements = 0;  ///< of this copy
};

/// Calls f(file_tensor) for each tensor of the model in file order: layer by layer, copy by copy.
template <class M, class F>
void for_each_file_tensor(F f) {
    for (const table_row& row : tensor_table<M>.rows) {
        const long long elements = row.tensor.elements().value() / row.tensor.copies;
        for (long long i = 0; i < row.layers; ++i) {
            for (long long copy = 0; copy < row.tensor.copies; ++copy) {
                f(file_tensor{tensor_name(row, i, copy), &row, row.offset_of(i) + copy * elements, elements});
            }
        }
    }
}

}  // namespace sdepth::inline v0
