// SPDX-License-Identifier: MIT
// What the passes of all layers share: the tensors of one layer, the extents of a batch, the rows of a pass. Rank 5.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sdepth/carve.hpp"
#include "sdepth/rows.hpp"
#include "sdepth/tensor_table.hpp"

namespace sdepth::inline v0 {

/// Rows of one micro-batch; `capacity` of each sequence's `seq` rows are executed by a layer.
struct extents {
    int batch = 1;
    int seq = 0;
    int capacity = 0;

    constexpr long long all_rows() const { return static_cast<long long>(batch) * seq; }
    constexpr long long own_rows() const { return static_cast<long long>(batch) * capacity; }
};

/// The tensors of one layer of kind L, as weights, master copies and gradients.
template <class L, class M, class B>
class layer_view {
  public:
    using precision = typename B::precision;
    using weight_type = typename B::precision::weight;
    using master_type = typename B::precision::master;
    using gradient_type = typename B::precision::gradient;

    /// @param weights, master, gradients  starts of the regions; gradients may be null
    /// @param start                       offset of the layer in the first two
    /// @param adds                        see `adds_to_matrices`
    layer_view(weight_type* weights, master_type* master, gradient_type* gradients, long long start, bool adds = true)
        : weights_(weights), master_(master), gradients_(gradients), start_(start), adds_(adds) {}

    /// Place of a tensor inside the layer.
    static consteval tensor_place at(std::string_view name) { return layer_layout<L, M::dims>.place(name, 0); }
    /// A matrix as products read it. Null if the layer has no such tensor.
    weight_type* weight(tensor_place place) const {
        return place.offset < 0 ? nullptr : weights_ + start_ + place.offset;
    }
    /// A vector, scalar or router. Null if the layer has no such tensor.
    master_type* master(tensor_place place) const {
        return place.offset < 0 ? nullptr : master_ + start_ + place.offset;
    }
    gradient_type* gradient(tensor_place place) const {
        if (place.offset < 0 || gradients_ == nullptr) return nullptr;
        return gradients_ + mirrored<M>(start_ + place.offset, place.elements);
    }
    /// Whether gradients of matrices add to what is there; else nothing is, and they are written.
    bool adds_to_matrices() const { return adds_; }

  private:
    weight_type* weights_;
    master_type* master_;
    gradient_type* gradients_;
    long long start_;
    bool adds_;
};

/// Keys and values that one layer has executed so far in decoding: the state of mixers that look back.
template <class B>
struct kv_cache {
    using activation = typename B::precision::activation;
    activation* k = nullptr;   // [B, capacity, Hkv, h]
    activation* v = nullptr;   // [B, capacity, Hkv, h]
    int* positions = nullptr;  // [B, capacity]
    int* count = nullptr;      // [B]
    int capacity = 0;

    constexpr void carve(carver& take, const Dims& d, long long batch, long long context) {
        take(k, batch * context * d.kv() * d.head_dim);
        take(v, batch * context * d.kv() * d.head_dim);
        take(positions, batch * context);
        take(count, batch);
        capacity = static_cast<int>(context);
    }
};

/// Depth slots of a micro-batch, as one layer sees them. A layer writes the slots `written` and following.
template <class B>
struct layer_slots {
    typename B::precision::activation* memory = nullptr;  // [B, L, S, Hkv, 2, h]
    typename B::precision::sum* sums = nullptr;           // the same, gradients; training only
    std::uint8_t* mask = nullptr;                         // [B, L, S]
    int slots = 0;                                        // S; slots from there on are read by nobody and not written
    int written = 0;                                      // by the layers before
    const std::uint8_t* hidden = nullptr;                 // [S], host memory, of every reader; null: none
    int sequence = 0;                                     // L
    const int* ids = nullptr;                             // [rows], position of each executed row
    bool every_key = false;                               // keys and values are those of every row
    double* mass = nullptr;                               // [H + 2], see DepthMassArgs; null: not wanted
    typename B::precision::sum* lse_room = nullptr;       // [B, L, H], with `mass`
};

/// Rows that a mixer reads, and which of them see which.
template <class B>
struct mixer_rows {
    using activation = typename B::precision::activation;

    batch_rows rows;                     ///< rows that are executed
    batch_rows key_rows;                 ///< rows that give keys; the same, or all of the sequence
    const activation* x = nullptr;       ///< [rows, d] input of the mixer
    const activation* key_x = nullptr;   ///< [key_rows, d]
    const int* positions = nullptr;      ///< of rows
    const int* key_positions = nullptr;  ///< of key_rows; null: their index
    const int* first = nullptr;          ///< visible keys of each row; null: plain causal
    const int* last = nullptr;
    int window = 0;
    layer_slots<B> depth{};
    // Decoding only: room for visibility, [rows].
    int* first_room = nullptr;
    int* last_room = nullptr;
};

// Memory by elements; backends speak of bytes.

template <class B, class T>
void clear(B& backend, T* to, long long elements) {
    if (elements > 0) backend.zero(to, static_cast<std::size_t>(elements) * sizeof(T));
}
template <class B, class T>
void copy(B& backend, T* to, const T* from, long long elements) {
    if (elements > 0) backend.copy(to, from, static_cast<std::size_t>(elements) * sizeof(T));
}
/// From host memory to the backend's.
template <class B, class T>
void write(B& backend, T* to, const T* from, long long elements) {
    if (elements > 0) backend.to_device(to, from, static_cast<std::size_t>(elements) * sizeof(T));
}
/// From the backend's memory to the host's; waits for the operations before.
template <class B, class T>
void read(B& backend, T* to, const T* from, long long elements) {
    if (elements > 0) backend.from_device(to, from, static_cast<std::size_t>(elements) * sizeof(T));
}

}  // namespace sdepth::inline v0
