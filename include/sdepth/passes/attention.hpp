// SPDX-License-Identifier: MIT
// Forward and backward of the attention mixer as backend operations, and the buffers that they need. Rank 5.
#pragma once

#include <array>
#include <cmath>
#include <string_view>

#include "sdepth/layers/attention.hpp"
#include "sdepth/ops/attention.hpp"
#include "sdepth/ops/linear.hpp"
#include "sdepth/ops/rotary.hpp"
#include "sdepth/passes/view.hpp"

namespace sdepth::inline v0 {

/// A backend that takes attention's gradients through the preparation of its queries in one operation.
template <class B>
concept gives_prepared_gradients = requires(B& backend,
                                            const AttentionBackwardArgs<typename B::precision::activation>& attention,
                                            const QkPrepareBackwardArgs<typename B::precision>& queries) {
    backend.prepared_attention_backward(attention, queries);
};

/// Forward and backward of a mixer; a mixer without a specialisation can be counted but not run. `state` is what
/// decoding keeps of one layer from pass to pass: zero is a fresh one, an uncarved one means no decoding.
template <class Mixer>
struct mixer_pass;

template <attention_policy P>
struct mixer_pass<Attention<P>> {
    static constexpr attention_policy policy = P;
    static constexpr bool has_norm = policy.norm != qk_norm::none;
    static constexpr std::array<std::string_view, 4> written_matrices{
        "self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.o_proj.weight"};

    /// Kept from forward to backward.
    template <class B>
    struct saved {
        using activation = typename B::precision::activation;
        using sum = typename B::precision::sum;
        activation* q = nullptr;      // [rows, H, h], prepared
        activation* k = nullptr;      // [key rows, Hkv, h], prepared
        activation* v = nullptr;      // [key rows, Hkv, h]
        activation* o = nullptr;      // [rows, H, h]
        sum* lse = nullptr;           // [rows, H]
        activation* q_raw = nullptr;  // before the norm; only with one
        activation* k_raw = nullptr;
        sum* q_rstd = nullptr;
        sum* k_rstd = nullptr;

        constexpr void carve(carver& take, const Dims& d, const extents& e, bool full_keys) {
            const long long rows = e.own_rows();
            const long long key_rows = full_keys ? e.all_rows() : rows;
            take(q, rows * d.heads * d.head_dim);
            take(k, key_rows * d.kv() * d.head_dim);
            take(v, key_rows * d.kv() * d.head_dim);
            take(o, rows * d.heads * d.head_dim);
            take(lse, rows * d.heads);
            if (has_norm) {
                take(q_raw, rows * d.heads * d.head_dim);
                take(k_raw, key_rows * d.kv() * d.head_dim);
                take(q_rstd, rows * d.heads);
                take(k_rstd, key_rows * d.kv());
            }
        }
    };

    /// Needed during one backward only.
    template <class B>
    struct scratch {
        using activation = typename B::precision::activation;
        activation* grad_o = nullptr;
        activation* grad_q = nullptr;
        activation* grad_k = nullptr;
        activation* grad_v = nullptr;

        constexpr void carve(carver& take, const Dims& d, const extents& e, bool full_keys) {
            const long long key_rows = full_keys ? e.all_rows() : e.own_rows();
            take(grad_o, e.own_rows() * d.heads * d.head_dim);
            take(grad_q, e.own_rows() * d.heads * d.head_dim);
            take(grad_k, key_rows * d.kv() * d.head_dim);
            take(grad_v, key_rows * d.kv() * d.head_dim);
        }
    };

    template <class B>
    using state = kv_cache<B>;

    /// a = W_o attention(x), with keys from `in.key_x` and, in decoding, from the cache.
    template <class B, class View>
    static void forward(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in, const state<B>& cache,
                        const saved<B>& s, typename B::precision::activation* a) {
        attend(backend, d, w, in, cache, s);
        backend.linear(output<typename B::precision>(d, in, w, s.o, a));
    }

    /// From grad_a: gradients of the projections, and grad_x, grad_key_x.
    /// @param grad_x      [rows, d], overwritten
    /// @param grad_key_x  [key rows, d]: null where keys come from x itself, else overwritten
    template <class B, class View>
    static void backward(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in, const saved<B>& s,
                         const scratch<B>& g, const typename B::precision::activation* grad_a,
                         typename B::precision::activation* grad_x, typename B::precision::activation* grad_key_x) {
        output_backward(backend, d, w, in, s.o, g, grad_a);
        constexpr bool together = gives_prepared_gradients<B> &&
                                  (policy.norm == qk_norm::per_head || (policy.norm == qk_norm::none && policy.rotary));
        if constexpr (together)
            backend.prepared_attention_backward(core_gradients<B>(d, in, s, g), query_gradients(d, w, in, s, g));
        else
            core_backward(backend, d, in, s, g);
        input_backward<together>(backend, d, w, in, s, g, grad_x, grad_key_x);
    }

    // ---- the parts of the two, for mixers that put something between ----

    /// All before W_o. Returns what attention saw.
    template <class B, class View>
    static auto attend(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in, const state<B>& cache,
                       const saved<B>& s) {
        using T = typename B::precision;
        auto* q_out = has_norm ? s.q_raw : s.q;
        auto* k_out = has_norm ? s.k_raw : s.k;
        backend.linear(projection<T>(d, in.rows, in.x, w, View::at("self_attn.q_proj.weight"),
                                     View::at("self_attn.q_proj.bias"), d.heads, q_out));
        backend.linear(projection<T>(d, in.key_rows, in.key_x, w, View::at("self_attn.k_proj.weight"),
                                     View::at("self_attn.k_proj.bias"), d.kv(), k_out));
        backend.linear(projection<T>(d, in.key_rows, in.key_x, w, View::at("self_attn.v_proj.weight"),
                                     View::at("self_attn.v_proj.bias"), d.kv(), s.v));
        if (has_norm || policy.rotary) {
            backend.qk_prepare(queries<T>(d, in, w, s));
            backend.qk_prepare(keys<T>(d, in, w, s));
        }
        const AttentionArgs<typename T::activation> seen =
            cache.k == nullptr ? core<T>(d, in, s) : on_cache(backend, d, in, cache, s);
        backend.attention(seen);
        return seen;
    }
    /// g.grad_o from grad_a, where W_o read `o`.
    template <class B, class View>
    static void output_backward(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in,
                                const typename B::precision::activation* o, const scratch<B>& g,
                                const typename B::precision::activation* grad_a) {
        backend.linear_backward({.forward = output<typename B::precision>(d, in, w, o, nullptr),
                                 .grad_y = grad_a,
                                 .grad_x = g.grad_o,
                                 .grad_weight = w.gradient(View::at("self_attn.o_proj.weight")),
                                 .adds_to_grad_weight = w.adds_to_matrices(),
                                 .grad_bias = w.gradient(View::at("self_attn.o_proj.bias"))});
    }
    /// The gradients of queries, keys and values from g.grad_o, s.o and s.lse.
    template <class B>
    static void core_backward(B& backend, const Dims& d, const mixer_rows<B>& in, const saved<B>& s,
                              const scratch<B>& g) {
        backend.attention_backward(core_gradients<B>(d, in, s, g));
    }
    /// From the gradients of queries, keys and values to those of the projections and inputs; `queries_done`: those of
    /// the queries have been through their preparation.
    template <bool queries_done = false, class B, class View>
    static void input_backward(B& backend, const Dims& d, const View& w, const mixer_rows<B>& in, const saved<B>& s,
                               const scratch<B>& g, typename B::precision::activation* grad_x,
                               typename B::precision::activation* grad_key_x) {
        using T = typename B::precision;
        if (has_norm || policy.rotary) {
            if (!queries_done) backend.qk_prepare_backward(query_gradients(d, w, in, s, g));
            backend.qk_prepare_backward({.forward = keys<T>(d, in, w, s),
                                         .grad_y = g.grad_k,
                                         .grad_x = g.grad_k,
                                         .grad_weight = w.gradient(View::at("self_attn.k_norm.weight"))});
        }
        const bool shared = grad_key_x == nullptr;
        auto* to_keys = shared ? grad_x : grad_key_x;
        const auto back = [&](const batch_rows& rows, const auto* x, tensor_place weight, tensor_place bias,
                              long long heads, const auto* grad_y, auto* grad, bool adds) {
            backend.linear_backward({.forward = projection<T>(d, rows, x, w, weight, bias, heads, nullptr),
                                     .grad_y = grad_y,
                                     .grad_x = grad,
                                     .adds_to_grad_x = adds,
                                     .grad_weight = w.gradient(weight),
                                     .adds_to_grad_weight = w.adds_to_matrices(),
                                     .grad_bias = w.gradient(bias)});
        };
        back(in.rows, in.x, View::at("self_attn.q_proj.weight"), View::at("self_attn.q_proj.bias"), d.heads, g.grad_q,
             grad_x, false);
        back(in.key_rows, in.key_x, View::at("self_attn.k_proj.weight"), View::at("self_attn.k_proj.bias"), d.kv(),
             g.grad_k, to_keys, shared);
        back(in.key_rows, in.key_x, View::at("self_attn.v_proj.weight"), View::at("self_attn.v_proj.bias"), d.kv(),
             g.grad_v, to_keys, true);
    }
    template <class T, class View>
    static LinearArgs<T> output(const Dims& d, const auto& in, const View& w, const typename T::activation* o,
                                typename T::activation* a) {
        return {.rows = in.rows,
                .inputs = static_cast<int>(d.heads * d.head_dim),
                .outputs = static_cast<int>(d.width),
                .x = o,
                .weight = w.weight(View::at("self_attn.o_proj.weight")),
                .bias = w.master(View::at("self_attn.o_proj.bias")),
                .y = a};
    }
    /// Norm and phase of queries or keys, `heads` of them in a row.
    template <class T>
    static QkPrepareArgs<T> prepared(const Dims& d, const batch_rows& rows, long long heads,
                                     const typename T::master* weight, const int* positions,
                                     const typename T::activation* x, typename T::activation* y,
                                     typename T::sum* rstd) {
        return {.rows = rows,
                .heads = static_cast<int>(heads),
                .head_dim = static_cast<int>(d.head_dim),
                .norm = policy.norm,
                .epsilon = policy.norm_epsilon,
                .rotary = policy.rotary,
                .base = policy.rotary_base,
                .x = x,
                .weight = weight,
                .positions = positions,
                .y = y,
                .rstd = rstd};
    }

  private:
    // Appends the pass's keys and values to the cache and looks at all of them.
    template <class B>
    static auto on_cache(B& backend, const Dims& d, const mixer_rows<B>& in, const kv_cache<B>& cache,
                         const saved<B>& s) {
        using T = typename B::precision;
        backend.cache({.rows = in.key_rows,
                       .width = static_cast<int>(d.kv() * d.head_dim),
                       .capacity = cache.capacity,
                       .k = s.k,
                       .v = s.v,
                       .positions = in.key_positions,
                       .cached_k = cache.k,
                       .cached_v = cache.v,
                       .cached_positions = cache.positions,
                       .count = cache.count});
        AttentionArgs<typename T::activation> args = core<T>(d, in, s);
        args.keys = {cache.capacity, cache.count};
        args.k = cache.k;
        args.v = cache.v;
        args.window = 0;
        backend.visibility({.queries = in.rows,
                            .keys = {in.rows.batch, args.keys},
                            .window = in.window,
                            .ids = in.positions,
                            .key_positions = cache.positions,
                            .first = in.first_room,
                            .last = in.last_room});
        args.first = in.first_room;
        args.last = in.last_room;
        return args;
    }
    template <class T, class View>
    static LinearArgs<T> projection(const Dims& d, const batch_rows& rows, const typename T::activation* x,
                                    const View& w, tensor_place weight, tensor_place bias, long long heads,
                                    typename T::activation* y) {
        return {.rows = rows,
                .inputs = static_cast<int>(d.width),
                .outputs = static_cast<int>(heads * d.head_dim),
                .x = x,
                .weight = w.weight(weight),
                .bias = w.master(bias),
                .y = y};
    }
    template <class T, class View, class Saved>
    static QkPrepareArgs<T> queries(const Dims& d, const auto& in, const View& w, const Saved& s) {
        return prepared<T>(d, in.rows, d.heads, w.master(View::at("self_attn.q_norm.weight")), in.positions,
                           has_norm ? s.q_raw : s.q, s.q, s.q_rstd);
    }
    template <class T, class View, class Saved>
    static QkPrepareArgs<T> keys(const Dims& d, const auto& in, const View& w, const Saved& s) {
        return prepared<T>(d, in.key_rows, d.kv(), w.master(View::at("self_attn.k_norm.weight")), in.key_positions,
                           has_norm ? s.k_raw : s.k, s.k, s.k_rstd);
    }
    // In place: g.grad_q.
    template <class B, class View>
    static QkPrepareBackwardArgs<typename B::precision> query_gradients(const Dims& d, const View& w,
                                                                        const mixer_rows<B>& in, const saved<B>& s,
                                                                        const scratch<B>& g) {
        return {.forward = queries<typename B::precision>(d, in, w, s),
                .grad_y = g.grad_q,
                .grad_x = g.grad_q,
                .grad_weight = w.gradient(View::at("self_attn.q_norm.weight"))};
    }
    template <class B>
    static AttentionBackwardArgs<typename B::precision::activation> core_gradients(const Dims& d,
                                                                                   const mixer_rows<B>& in,
                                                                                   const saved<B>& s,
                                                                                   const scratch<B>& g) {
        return {.forward = core<typename B::precision>(d, in, s),
                .grad_o = g.grad_o,
                .grad_q = g.grad_q,
                .grad_k = g.grad_k,
                .grad_v = g.grad_v};
    }
    template <class T, class Saved>
    static AttentionArgs<typename T::activation> core(const Dims& d, const auto& in, const Saved& s) {
        return {.batch = in.rows.batch,
                .heads = static_cast<int>(d.heads),
                .kv_heads = static_cast<int>(d.kv()),
                .head_dim = static_cast<int>(d.head_dim),
                .queries = in.rows.each,
                .keys = in.key_rows.each,
                .scale = 1 / std::sqrt(static_cast<double>(d.head_dim)),
                .window = in.first == nullptr ? in.window : 0,
                .q = s.q,
                .k = s.k,
                .v = s.v,
                .o = s.o,
                .lse = s.lse,
                .first = in.first,
                .last = in.last};
    }
};

}  // namespace sdepth::inline v0
