// SPDX-License-Identifier: MIT
// Forward and backward of Mixture-of-Depths Attention: attention, then the depth branch merged into its output and
// log-sum-exp; and the slots that a layer writes for later ones (arXiv 2603.15619, method 2 and 3). Rank 5.
//
// A slot holds prepared keys, with norm and phase like attention keys, for queries meet them at their own position.
// Backward, later layers have added to the sums of a slot's gradient before its writer reads them.
#pragma once

#include <cmath>

#include "sdepth/layers/moda.hpp"
#include "sdepth/ops/depth_attention.hpp"
#include "sdepth/ops/norm.hpp"
#include "sdepth/passes/attention.hpp"
#include "sdepth/passes/recurrent.hpp"

namespace sdepth::inline v0 {

template <moda_policy P, attention_policy A>
struct mixer_pass<DepthAttention<P, A>> {
    static constexpr moda_policy policy = P;
    using mixer = DepthAttention<P, A>;
    using base = mixer_pass<Attention<A>>;
    static constexpr bool measures_mass = policy.reads && policy.joint;  ///< a share exists of one softmax only
    static constexpr bool writes_ffn_slot = policy.ffn;
    static constexpr bool projects = policy.ffn || policy.attention == attention_slot::projected;

    /// Slots that the layer reads, of `written` ones.
    static constexpr slot_ranges seen(long long written) { return slots_seen(policy, written); }

    /// Keys of a slot with projections of its own, before the norm.
    template <class B>
    struct slot_saved {
        typename B::precision::activation* k_raw = nullptr;  // [rows, Hkv, h]
        typename B::precision::sum* rstd = nullptr;          // [rows, Hkv]

        constexpr void carve(carver& take, const Dims& d, long long rows) {
            take(k_raw, rows * d.kv() * d.head_dim);
            take(rstd, rows * d.kv());
        }
    };

    /// Kept from forward to backward.
    template <class B>
    struct saved {
        using activation = typename B::precision::activation;
        typename base::template saved<B> attention;  // o and lse: joint, or of the sequence where the two are separate
        slot_saved<B> of_attention, of_ffn;
        activation* k_room = nullptr;  // [rows, Hkv, h], a projected slot or its gradient, for a moment
        activation* v_room = nullptr;
        activation* depth_o = nullptr;  // separate softmaxes: [rows, H, h] and [rows, H] of the depth branch
        typename B::precision::sum* depth_lse = nullptr;
        activation* both_o = nullptr;  // and the sum of the two outputs

        constexpr void carve(carver& take, const Dims& d, const extents& e, bool full_keys) {
            const long long rows = e.own_rows();
            attention.carve(take, d, e, full_keys);
            if (base::has_norm && policy.attention == attention_slot::projected) of_attention.carve(take, d, rows);
            if (base::has_norm && policy.ffn) of_ffn.carve(take, d, rows);
            if (projects) {
                take(k_room, rows * d.kv() * d.head_dim);
                take(v_room, rows * d.kv() * d.head_dim);
            }
            if (policy.reads && !policy.joint) {
                take(depth_o, rows * d.heads * d.head_dim);
                take(depth_lse, rows * d.heads);
                take(both_o, rows * d.heads * d.head_dim);
            }
        }
    };
    template <class B>
    using scratch = typename base::template scratch<B>;
    template <class B>
    using state = typename base::template state<B>;

    /// a = W_o (attention over earlier positions and slots); writes the attention's slot.
    template <class B, class View>
    static void forward(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in, const state<B>& cache,
                        const saved<B>& s, typename B::precision::activation* a) {
        const auto sequence = base::attend(backend, d, w, in, cache, s.attention);
        const auto* o = s.attention.o;
        if constexpr (policy.reads && policy.joint) {
            read_jointly(backend, d, in, s, sequence);
        } else if constexpr (policy.reads) {
            read_apart(backend, d, in, s, sequence);
            o = s.both_o;
        }
        if (policy.attention == attention_slot::reused && stored(in, 0)) {
            auto args = slot(d, in, 0, s.attention.k, s.attention.v);
            args.every_row = in.depth.every_key;
            backend.write_slot(args);
        }
        if constexpr (policy.attention == attention_slot::projected) project<false>(backend, d, w, in, in.x, s);
        backend.linear(base::template output<typename B::precision>(d, in, w, o, a));
    }

    /// @param grad_x, grad_key_x  as in the attention's own pass
    template <class B, class View>
    static void backward(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in, const saved<B>& s,
                         const scratch<B>& g, const typename B::precision::activation* grad_a,
                         typename B::precision::activation* grad_x, typename B::precision::activation* grad_key_x) {
        constexpr bool apart = policy.reads && !policy.joint;
        base::output_backward(backend, d, w, in, apart ? s.both_o : s.attention.o, g, grad_a);
        base::core_backward(backend, d, in, s.attention, g);
        for_each_range(in, [&](int from, int slots) {
            backend.depth_attention_backward({.forward = branch(d, in, s, from, slots),
                                              .grad_o = g.grad_o,
                                              .grad_q = g.grad_q,
                                              .slot_sum = in.depth.sums + from * slot_size(d)});
        });
        if (policy.attention == attention_slot::reused && stored(in, 0)) {
            auto args = slot(d, in, 0, s.attention.k, s.attention.v);
            args.every_row = in.depth.every_key;
            backend.slot_gradient(
                {.forward = args, .slot_sum = in.depth.sums, .adds = true, .grad_k = g.grad_k, .grad_v = g.grad_v});
        }
        base::input_backward(backend, d, w, in, s.attention, g, grad_x, grad_key_x);
        if constexpr (policy.attention == attention_slot::projected)
            project_backward<false>(backend, d, w, in, in.x, s, grad_x);
    }

    /// Writes the slot of the feed-forward part, whose input is y, [rows, d].
    template <class B, class View>
    static void write_ffn_slot(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in,
                               const typename B::precision::activation* y, const saved<B>& s) {
        project<true>(backend, d, w, in, y, s);
    }
    /// @param grad_y  [rows, d], added to
    template <class B, class View>
    static void ffn_slot_backward(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in,
                                  const typename B::precision::activation* y, const saved<B>& s,
                                  typename B::precision::activation* grad_y) {
        project_backward<true>(backend, d, w, in, y, s, grad_y);
    }

  private:
    static constexpr long long slot_size(const Dims& d) { return 2 * d.kv() * d.head_dim; }

    // ---- the depth branch ----

    template <class B, class F>
    static void for_each_range(const mixer_rows<B>& in, const F& f) {
        const slot_ranges ranges = seen(in.depth.written);
        for (int part = 0; part < 2; ++part)
            if (ranges.size(part) > 0) f(ranges.begin[part], ranges.size(part));
    }
    // `slots` slots beginning with `from`, merged into the branch that s has room for.
    template <class B>
    static auto branch(const Dims& d, const mixer_rows<B>& in, const saved<B>& s, int from, int slots) {
        constexpr bool apart = policy.reads && !policy.joint;
        return DepthAttentionArgs<typename B::precision::activation>{
            .batch = in.rows.batch,
            .heads = static_cast<int>(d.heads),
            .kv_heads = static_cast<int>(d.kv()),
            .head_dim = static_cast<int>(d.head_dim),
            .tokens = in.rows.each,
            .slots = in.depth.slots,
            .used = slots,
            .scale = 1 / std::sqrt(static_cast<double>(d.head_dim)),
            .q = s.attention.q,
            .slot = in.depth.memory + from * slot_size(d),
            .mask = in.depth.mask + from,
            .o = apart ? s.depth_o : s.attention.o,
            .lse = apart ? s.depth_lse : s.attention.lse,
            .ids = in.depth.ids,
            .sequence = in.depth.sequence};
    }
    template <class B>
    static void read(B& backend, const Dims& d, const mixer_rows<B>& in, const saved<B>& s) {
        for_each_range(in, [&](int from, int slots) { backend.depth_attention(branch(d, in, s, from, slots)); });
    }
    // One softmax with the sequence.
    template <class B, class Sequence>
    static void read_jointly(B& backend, const Dims& d, const mixer_rows<B>& in, const saved<B>& s,
                             const Sequence& sequence) {
        const bool measured = in.depth.mass != nullptr;
        if (measured) copy(backend, in.depth.lse_room, s.attention.lse, in.rows.capacity() * d.heads);
        read(backend, d, in, s);
        if (!measured) return;
        backend.depth_mass({.attention = sequence,
                            .sequence_lse = in.depth.lse_room,
                            .seen = seen(in.depth.written),
                            .slots = in.depth.slots,
                            .sequence = in.depth.sequence,
                            .ids = in.depth.ids,
                            .mask = in.depth.mask,
                            .mass = in.depth.mass});
    }
    // A softmax of its own, added to the sequence's output. It begins as attention to no key at all: 0 and -infinity.
    template <class B, class Sequence>
    static void read_apart(B& backend, const Dims& d, const mixer_rows<B>& in, const saved<B>& s, Sequence nothing) {
        nothing.keys = {0, nullptr};
        nothing.first = nothing.last = nullptr;
        nothing.o = s.depth_o;
        nothing.lse = s.depth_lse;
        backend.attention(nothing);
        read(backend, d, in, s);
        backend.add({.rows = in.rows,
                     .width = static_cast<int>(d.heads * d.head_dim),
                     .x = s.attention.o,
                     .a = s.depth_o,
                     .sum = s.both_o});
    }

    // ---- the slots that this layer writes: `index` 0 is its first ----

    // Whether anybody may read it.
    template <class B>
    static bool stored(const mixer_rows<B>& in, int index) {
        return in.depth.written + index < in.depth.slots;
    }
    template <class B>
    static auto slot(const Dims& d, const mixer_rows<B>& in, int index, const typename B::precision::activation* k,
                     const typename B::precision::activation* v) {
        const int number = in.depth.written + index;
        return WriteSlotArgs<typename B::precision>{.rows = in.rows,
                                                    .sequence = in.depth.sequence,
                                                    .kv_heads = static_cast<int>(d.kv()),
                                                    .head_dim = static_cast<int>(d.head_dim),
                                                    .slots = in.depth.slots,
                                                    .slot = number,
                                                    .seen = in.depth.hidden == nullptr || in.depth.hidden[number] == 0,
                                                    .ids = in.depth.ids,
                                                    .k = k,
                                                    .v = v,
                                                    .memory = in.depth.memory,
                                                    .mask = in.depth.mask};
    }
    template <bool ffn>
    static constexpr int index_of = ffn ? mixer::attention_slots : 0;
    template <class View, bool ffn>
    static projection key(const Dims& d) {
        return {.weight = View::at(ffn ? "depth.ffn_k_proj.weight" : "depth.attention_k_proj.weight"),
                .bias = View::at(ffn ? "depth.ffn_k_proj.bias" : "depth.attention_k_proj.bias"),
                .inputs = d.width,
                .outputs = d.kv() * d.head_dim};
    }
    template <class View, bool ffn>
    static projection value(const Dims& d) {
        return {.weight = View::at(ffn ? "depth.ffn_v_proj.weight" : "depth.attention_v_proj.weight"),
                .bias = View::at(ffn ? "depth.ffn_v_proj.bias" : "depth.attention_v_proj.bias"),
                .inputs = d.width,
                .outputs = d.kv() * d.head_dim};
    }
    template <bool ffn, class B, class View>
    static auto prepared(const Dims& d, const View& w, const mixer_rows<B>& in, const saved<B>& s) {
        const slot_saved<B>& own = ffn ? s.of_ffn : s.of_attention;
        return base::template prepared<typename B::precision>(
            d, in.rows, d.kv(), w.master(View::at("self_attn.k_norm.weight")), in.positions,
            base::has_norm ? own.k_raw : s.k_room, s.k_room, own.rstd);
    }
    // A slot with projections of its own, from x, [rows, d].
    template <bool ffn, class B, class View>
    static void project(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in,
                        const typename B::precision::activation* x, const saved<B>& s) {
        if (!stored(in, index_of<ffn>)) return;
        projector<B, View> project(backend, w, in.rows);
        const slot_saved<B>& own = ffn ? s.of_ffn : s.of_attention;
        project.forward(key<View, ffn>(d), x, base::has_norm ? own.k_raw : s.k_room);
        project.forward(value<View, ffn>(d), x, s.v_room);
        if (base::has_norm || A.rotary) backend.qk_prepare(prepared<ffn>(d, w, in, s));
        backend.write_slot(slot(d, in, index_of<ffn>, s.k_room, s.v_room));
    }
    // Adds to grad_x.
    template <bool ffn, class B, class View>
    static void project_backward(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in,
                                 const typename B::precision::activation* x, const saved<B>& s,
                                 typename B::precision::activation* grad_x) {
        if (!stored(in, index_of<ffn>)) return;
        constexpr bool second = !ffn && policy.ffn;
        if (second) backend.join();  // the feed-forward slot's gradients lie in the same room
        backend.slot_gradient({.forward = slot(d, in, index_of<ffn>, s.k_room, s.v_room),
                               .slot_sum = in.depth.sums,
                               .grad_k = s.k_room,
                               .grad_v = s.v_room});
        if (base::has_norm || A.rotary) {
            backend.qk_prepare_backward({.forward = prepared<ffn>(d, w, in, s),
                                         .grad_y = s.k_room,
                                         .grad_x = s.k_room,
                                         .grad_weight = w.gradient(View::at("self_attn.k_norm.weight"))});
        }
        projector<B, View> project(backend, w, in.rows);
        project.backward(key<View, ffn>(d), x, s.k_room, grad_x, true);
        project.backward(value<View, ffn>(d), x, s.v_room, grad_x, true);
    }
};

}  // namespace sdepth::inline v0
