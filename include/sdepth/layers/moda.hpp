// SPDX-License-Identifier: MIT
// Mixture-of-Depths Attention: one softmax over earlier positions of this layer and earlier layers of this position.
// Source: arXiv 2603.15619, method 2 and 3. Rank 2.
#pragma once

#include <string_view>

#include "sdepth/layer.hpp"
#include "sdepth/layers/attention.hpp"
#include "sdepth/layers/block.hpp"
#include "sdepth/rows.hpp"

namespace sdepth::inline v0 {

/// Which depth slot the attention part of a layer writes.
enum class attention_slot {
    none,
    reused,    ///< the layer's own keys and values, no new weights
    projected  ///< keys and values from projections of their own
};
/// Which slots a layer reads when their number is bounded (section 6).
enum class slot_choice {
    nearest,  ///< the last written
    first,    ///< the earliest written
    mixed     ///< half earliest, half latest
};

constexpr std::string_view name_of(attention_slot slot) {
    constexpr std::string_view names[] = {"none", "reused", "projected"};
    return names[static_cast<int>(slot)];
}
constexpr std::string_view name_of(slot_choice choice) {
    constexpr std::string_view names[] = {"nearest", "first", "mixed"};
    return names[static_cast<int>(choice)];
}

struct moda_policy {
    bool reads = true;  ///< attends to the slots of earlier layers
    attention_slot attention = attention_slot::reused;
    bool ffn = true;      ///< a slot from the input of the feed-forward part
    long long slots = 0;  ///< slots that a query reads at most; 0 = all
    slot_choice choice = slot_choice::nearest;
    bool joint = true;  ///< one softmax with the sequence; false = separate ones, summed

    friend constexpr bool operator==(const moda_policy&, const moda_policy&) = default;
};

/// Slots that a layer sees of the `written` ones of earlier layers, in order of writing; of `mixed`, the earliest get
/// the smaller half. `check` bounds them all by `largest_size(size_name::slots)`, an int.
constexpr slot_ranges slots_seen(const moda_policy& p, long long written) {
    const auto all = static_cast<int>(written), bound = static_cast<int>(p.slots);
    if (!p.reads) return {};
    if (p.slots == 0 || p.slots >= written) return {{0, all}, {all, all}};
    const int early = p.choice == slot_choice::nearest ? 0 : p.choice == slot_choice::first ? bound : bound / 2;
    return {{0, all - bound + early}, {early, all}};
}

/// Attention that reads depth slots and writes some.
template <moda_policy P = moda_policy{}, attention_policy A = attention_policy{}>
struct DepthAttention {
    using attention = Attention<A>;
    static constexpr moda_policy policy = P;
    static constexpr std::string_view name = "depth attention";
    static constexpr bool causal = true;
    static constexpr bool writes_ffn_slot = policy.ffn;
    static constexpr int attention_slots = policy.attention == attention_slot::none ? 0 : 1;

    static constexpr tensor_rows tensors(const Dims& d) {
        tensor_rows rows = attention::tensors(d);
        if (policy.attention == attention_slot::projected) {
            add_projection(rows, d,
                           {"depth.attention_k_proj.weight", "depth.attention_v_proj.weight",
                            "depth.attention_k_proj.bias", "depth.attention_v_proj.bias"});
        }
        if (policy.ffn) {
            add_projection(rows, d,
                           {"depth.ffn_k_proj.weight", "depth.ffn_v_proj.weight", "depth.ffn_k_proj.bias",
                            "depth.ffn_v_proj.bias"});
        }
        return rows;
    }
    static constexpr mixing_work mixing(const Dims& d) {
        mixing_work work = attention::mixing(d);
        if (policy.reads) work.per_slot = 2 * d.heads * d.head_dim;
        work.slots_read_at_most = policy.slots;
        return work;
    }
    static constexpr state_size state(const Dims& d) {
        state_size size = attention::state(d);
        size.slots_written = attention_slots + (policy.ffn ? 1 : 0);
        size.slot = 2 * d.kv() * d.head_dim;
        return size;
    }
    static constexpr verdict check(const Dims& d) {
        return detail::first_broken(
            attention::check(d), detail::require(policy.slots >= 0, rule::window_not_negative, policy.slots),
            detail::require_bound(policy.slots, size_name::slots),
            detail::require_choice(policy_name::attention, policy.attention, attention_slot::projected),
            detail::require_choice(policy_name::choice, policy.choice, slot_choice::mixed));
    }

    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        attention::describe(sink, d);
        sink.function("reads depth slots", policy.reads);
        sink.function("attention slot", name_of(policy.attention));
        sink.function("ffn-input slot", policy.ffn);
        if (policy.reads) {
            sink.function("slots at most, 0 = all", policy.slots);
            if (policy.slots > 0) sink.function("slot choice", name_of(policy.choice));
            sink.function("joint softmax", policy.joint);
        }
        sink.function("depth keys", "norm and phase as attention keys");
        sink.function("slots there are", "of earlier layers that executed the position, in order of execution");
    }

  private:
    struct projection_names {
        std::string_view key, value, key_bias, value_bias;
    };
    static constexpr void add_projection(tensor_rows& rows, const Dims& d, projection_names names) {
        const long long keys = d.kv() * d.head_dim;
        rows.add(matrix(names.key, role::depth_key, keys, d.width));
        rows.add(matrix(names.value, role::depth_value, keys, d.width));
        if (A.biases) {
            rows.add(vector(names.key_bias, role::bias, keys, {init_kind::zeros, 0}));
            rows.add(vector(names.value_bias, role::bias, keys, {init_kind::zeros, 0}));
        }
    }
};

/// Depth attention and SwiGLU; the default writes the layer's own keys and values and a slot from the FFN input.
template <moda_policy P = moda_policy{}>
inline constexpr Block<DepthAttention<detail::evaluated(P)>, SwiGLU<>> moda_with{};
inline constexpr auto moda = moda_with<>;
/// The last layer of such a model: it reads the slots of all layers before it and writes none itself, for no layer
/// after it could read them.
inline constexpr auto moda_last = moda_with<moda_policy{.attention = attention_slot::none, .ffn = false}>;

}  // namespace sdepth::inline v0
