// SPDX-License-Identifier: MIT
// Forward and backward of a block on packed rows: norms, mixer, feed-forward part. The residual sum belongs to the
// layer pass (passes/layer.hpp), which knows whether the rows are chosen and gated. Rank 5.
#pragma once

#include <array>
#include <string_view>

#include "sdepth/layers/block.hpp"
#include "sdepth/ops/norm.hpp"
#include "sdepth/passes/attention.hpp"
#include "sdepth/passes/experts.hpp"
#include "sdepth/passes/ffn.hpp"
#include "sdepth/passes/gated_delta.hpp"
#include "sdepth/passes/linear_attention.hpp"
#include "sdepth/passes/mamba.hpp"
#include "sdepth/passes/mamba2.hpp"
#include "sdepth/passes/moda.hpp"
#include "sdepth/passes/s4.hpp"
#include "sdepth/passes/view.hpp"

namespace sdepth::inline v0 {

/// The empty axis runs nothing and needs nothing.
template <>
struct mixer_pass<None> {
    static constexpr std::array<std::string_view, 0> written_matrices{};

    template <class B>
    struct saved {
        constexpr void carve(carver&, const Dims&, const extents&, bool) {}
    };
    template <class B>
    using scratch = saved<B>;
    template <class B>
    struct state {
        constexpr void carve(carver&, const Dims&, long long, long long) {}
    };
};
template <>
struct ffn_pass<None> {
    static constexpr long long experts = 0;
    static constexpr std::array<std::string_view, 0> written_matrices{};

    template <class B>
    struct saved {
        constexpr void carve(carver&, carver&, const Dims&, const extents&) {}
    };
    template <class B>
    struct scratch {
        constexpr void carve(carver&, const Dims&, const extents&) {}
    };
};

template <class Block>
struct block_pass;

template <class Mixer, class Ffn, block_policy P>
struct block_pass<Block<Mixer, Ffn, P>> {
    static constexpr block_policy policy = P;
    static constexpr bool has_mixer = !std::is_same_v<Mixer, None>;
    static constexpr bool has_ffn = !std::is_same_v<Ffn, None>;
    static constexpr bool pre = policy.norm == norm_place::pre;
    using mixer_part = mixer_pass<Mixer>;
    using ffn_part = ffn_pass<Ffn>;
    static constexpr bool writes_ffn_slot = [] {
        if constexpr (requires { mixer_part::writes_ffn_slot; }) {
            return has_ffn && mixer_part::writes_ffn_slot;
        } else {
            return false;
        }
    }();

    /// From forward to backward. A full replay keeps x only, a selective one all but the normed inputs and the hidden
    /// rows: the rest then comes from carvers of memory that all layers share.
    template <class B>
    struct saved {
        using activation = typename B::precision::activation;
        activation* x = nullptr;  // [rows, d], input of the block
        activation* a = nullptr;  // [rows, d], branch of the mixer
        activation* f = nullptr;  // [rows, d], branch of the feed-forward part
        activation* u = nullptr;  // [rows, d], x + a
        activation* y = nullptr;  // [rows, d], normed input of the mixer
        activation* z = nullptr;  // [rows, d], normed input of the feed-forward part
        typename B::precision::sum* rstd_a = nullptr;
        typename B::precision::sum* rstd_f = nullptr;
        activation* a_raw = nullptr;  // post-norm: a before its norm
        activation* f_raw = nullptr;
        typename mixer_pass<Mixer>::template saved<B> mixer;
        typename ffn_pass<Ffn>::template saved<B> ffn;

        constexpr void carve(carver& keep, carver& take, carver& hidden, const Dims& d, const extents& e,
                             bool full_keys) {
            const long long rows = e.own_rows();
            keep(x, rows * d.width);
            if (has_mixer) {
                take(a, rows * d.width);
                take(rstd_a, rows);
                if (pre) hidden(y, rows * d.width);
                if (has_ffn) hidden(u, rows * d.width);
                if (!pre) take(a_raw, rows * d.width);
            }
            if (has_ffn) {
                take(f, rows * d.width);
                take(rstd_f, rows);
                if (pre) hidden(z, rows * d.width);
                if (!pre) take(f_raw, rows * d.width);
            }
            mixer.carve(take, d, e, full_keys);
            ffn.carve(keep, hidden, d, e);
        }
    };

    /// Needed during one layer only.
    template <class B>
    struct scratch {
        using activation = typename B::precision::activation;
        activation* grad_y = nullptr;    // [rows, d]
        activation* grad_raw = nullptr;  // [rows, d], post-norm: of a before its norm
        activation* key_y = nullptr;     // [all rows, d], normed keys' input; full keys only
        activation* grad_key_y = nullptr;
        typename B::precision::sum* key_rstd = nullptr;
        typename mixer_pass<Mixer>::template scratch<B> mixer;
        typename ffn_pass<Ffn>::template scratch<B> ffn;

        constexpr void carve(carver& take, const Dims& d, const extents& e, bool full_keys) {
            take(grad_y, e.own_rows() * d.width);
            if (!pre) take(grad_raw, e.own_rows() * d.width);
            if (full_keys) {
                take(key_y, e.all_rows() * d.width);
                take(grad_key_y, e.all_rows() * d.width);
                take(key_rstd, e.all_rows());
            }
            mixer.carve(take, d, e, full_keys);
            ffn.carve(take, d, e);
        }
    };

    /// What decoding keeps of the block.
    template <class B>
    using state = typename mixer_pass<Mixer>::template state<B>;

    /// s.x, and the normed input of the block's first part.
    template <class B, class View>
    static void gather_input(B& backend, const Dims& d, const View& w, const GatherArgs<typename B::precision>& from,
                             const saved<B>& s) {
        if constexpr (pre) {
            backend.gather_rms_norm(from, first_norm(d, w, from.rows, s));
        } else {
            backend.gather(from);
        }
    }
    /// The second of these again, from s.x.
    template <class B, class View>
    static void norm_input(B& backend, const Dims& d, const View& w, const batch_rows& rows, const saved<B>& s) {
        if constexpr (pre) backend.rms_norm(first_norm(d, w, rows, s));
    }
    /// From s.x and the normed input: s.a and s.f.
    /// @param in     rows and visibility; its inputs are set here
    /// @param kept   the state so far, which this pass extends; uncarved outside decoding
    /// @param all_x  [all rows, d], the residual stream, where every row gives keys; else null
    /// @param step   what a feed-forward part that routes needs to know
    template <class B, class View>
    static void forward(B& backend, const Dims& d, const View& w, mixer_rows<B> in,
                        const typename B::precision::activation* all_x, [[maybe_unused]] const state<B>& kept,
                        const saved<B>& s, const scratch<B>& t, const ffn_step& step) {
        if constexpr (has_mixer) {
            mixer_input(backend, d, w, in, all_x, s, t);
            mixer_pass<Mixer>::forward(backend, d, w, in, kept, s.mixer, pre ? s.a : s.a_raw);
            if constexpr (!pre) backend.rms_norm(norm(d, w, mixer_norm<View>, in.rows, s.a_raw, s.a, s.rstd_a));
        }
        if constexpr (has_ffn) {
            const auto* y = make_ffn_input(backend, d, w, in.rows, s);
            if constexpr (writes_ffn_slot) mixer_part::write_ffn_slot(backend, d, w, in, y, s.mixer);
            ffn_pass<Ffn>::forward(backend, d, w, in.rows, y, s.ffn, t.ffn, pre ? s.f : s.f_raw, step);
            if constexpr (!pre) backend.rms_norm(norm(d, w, ffn_norm<View>, in.rows, s.f_raw, s.f, s.rstd_f));
        }
    }

    /// The normed inputs and the hidden rows of the feed-forward part again: a selective replay.
    template <class B, class View>
    static void replay_cheap(B& backend, const Dims& d, const View& w, const batch_rows& rows, const saved<B>& s,
                             const scratch<B>& t) {
        norm_input(backend, d, w, rows, s);
        if constexpr (has_ffn) {
            const auto* y = make_ffn_input(backend, d, w, rows, s);
            ffn_pass<Ffn>::hidden(backend, d, w, rows, y, s.ffn, t.ffn);
        }
    }

    /// From the gradients of both branches: gradients of the weights, and of s.x.
    /// @param grad_a    [rows, d]; changed
    /// @param grad_f    [rows, d]
    /// @param grad_x    [rows, d], overwritten: what reaches x through the branches
    /// @param grad_all  [all rows, d], added to: what reaches all_x through full keys; else null
    template <class B, class View>
    static void backward(B& backend, const Dims& d, const View& w, mixer_rows<B> in,
                         const typename B::precision::activation* all_x, const saved<B>& s, const scratch<B>& t,
                         typename B::precision::activation* grad_a, const typename B::precision::activation* grad_f,
                         typename B::precision::activation* grad_x, typename B::precision::activation* grad_all,
                         const ffn_step& step) {
        const auto norm_back = [&](tensor_place weight, const batch_rows& rows, const auto* x, auto* rstd,
                                   const auto* grad_y, auto* grad, bool adds, decltype(grad) also = nullptr) {
            backend.rms_norm_backward({.forward = norm(d, w, weight, rows, x, grad, rstd),
                                       .grad_y = grad_y,
                                       .grad_x = grad,
                                       .adds_to_grad_x = adds,
                                       .also = also,
                                       .grad_weight = w.gradient(weight)});
        };
        const auto add = [&](const batch_rows& rows, auto* sum, const auto* a) {
            backend.add({.rows = rows, .width = static_cast<int>(d.width), .x = sum, .a = a, .sum = sum});
        };
        if constexpr (has_ffn) {
            const auto* y = ffn_input(s);
            if constexpr (pre) {
                ffn_pass<Ffn>::backward(backend, d, w, in.rows, y, s.ffn, t.ffn, grad_f, t.grad_y, step);
                if constexpr (writes_ffn_slot) mixer_part::ffn_slot_backward(backend, d, w, in, y, s.mixer, t.grad_y);
                // What reaches u = x + a goes to both.
                norm_back(ffn_norm<View>, in.rows, has_mixer ? s.u : s.x, s.rstd_f, t.grad_y, grad_x, false,
                          has_mixer ? grad_a : nullptr);
            } else {
                norm_back(ffn_norm<View>, in.rows, s.f_raw, s.rstd_f, grad_f, t.grad_y, false);
                ffn_pass<Ffn>::backward(backend, d, w, in.rows, y, s.ffn, t.ffn, t.grad_y, grad_x, step);
                if constexpr (writes_ffn_slot) mixer_part::ffn_slot_backward(backend, d, w, in, y, s.mixer, grad_x);
                backend.join();  // grad_y is used again
                if constexpr (has_mixer) add(in.rows, grad_a, grad_x);
            }
        }
        if constexpr (has_mixer) {
            mixer_input(backend, d, w, in, all_x, s, t);
            auto* grad_keys = all_x != nullptr ? t.grad_key_y : nullptr;
            if constexpr (pre) {
                mixer_pass<Mixer>::backward(backend, d, w, in, s.mixer, t.mixer, grad_a, t.grad_y, grad_keys);
                norm_back(mixer_norm<View>, in.rows, s.x, s.rstd_a, t.grad_y, grad_x, has_ffn);
                if (all_x != nullptr) {
                    norm_back(mixer_norm<View>, in.key_rows, all_x, t.key_rstd, t.grad_key_y, grad_all, true);
                }
            } else {
                norm_back(mixer_norm<View>, in.rows, s.a_raw, s.rstd_a, grad_a, t.grad_raw, false);
                auto* grad = has_ffn ? t.grad_y : grad_x;
                mixer_pass<Mixer>::backward(backend, d, w, in, s.mixer, t.mixer, t.grad_raw, grad, grad_keys);
                if constexpr (has_ffn) add(in.rows, grad_x, grad);
                if (all_x != nullptr) add(in.key_rows, grad_all, t.grad_key_y);
            }
        }
    }

  private:
    template <class View>
    static constexpr tensor_place mixer_norm = View::at(pre ? "input_layernorm.weight"
                                                            : "post_attention_layernorm.weight");
    template <class View>
    static constexpr tensor_place ffn_norm = View::at(pre ? "post_attention_layernorm.weight"
                                                          : "post_feedforward_layernorm.weight");

    template <class View, class A, class S>
    static auto norm(const Dims& d, const View& w, tensor_place weight, const batch_rows& rows, const A* x, A* y,
                     S* rstd) {
        return RmsNormArgs<typename View::precision>{.rows = rows,
                                                     .width = static_cast<int>(d.width),
                                                     .epsilon = policy.norm_epsilon,
                                                     .x = x,
                                                     .weight = w.master(weight),
                                                     .y = y,
                                                     .rstd = rstd};
    }

    // Norm of s.x for the first part of the block that has one.
    template <class View, class Saved>
    static auto first_norm(const Dims& d, const View& w, const batch_rows& rows, const Saved& s) {
        if constexpr (has_mixer) {
            return norm(d, w, mixer_norm<View>, rows, s.x, s.y, s.rstd_a);
        } else {
            return norm(d, w, ffn_norm<View>, rows, s.x, s.z, s.rstd_f);
        }
    }
    // Sets what the mixer reads. Rows that only give keys are normed again each time.
    template <class B, class View>
    static void mixer_input(B& backend, const Dims& d, const View& w, mixer_rows<B>& in,
                            const typename B::precision::activation* all_x, const saved<B>& s, const scratch<B>& t) {
        in.x = pre ? s.y : s.x;
        in.key_x = all_x != nullptr ? all_x : in.x;
        if constexpr (pre) {
            if (all_x == nullptr) return;
            backend.rms_norm(norm(d, w, mixer_norm<View>, in.key_rows, all_x, t.key_y, t.key_rstd));
            in.key_x = t.key_y;
        }
    }

    // What the feed-forward part reads: u = x + a, normed with pre-norm.
    template <class B>
    static const typename B::precision::activation* ffn_input(const saved<B>& s) {
        if constexpr (pre) return s.z;
        return has_mixer ? s.u : s.x;
    }
    template <class B, class View>
    static const typename B::precision::activation* make_ffn_input(B& backend, const Dims& d, const View& w,
                                                                   const batch_rows& rows, const saved<B>& s) {
        if constexpr (has_mixer) {
            const AddArgs<typename B::precision> sum{
                .rows = rows, .width = static_cast<int>(d.width), .x = s.x, .a = s.a, .sum = s.u};
            if constexpr (pre) {
                backend.add_rms_norm(sum, norm(d, w, ffn_norm<View>, rows, s.u, s.z, s.rstd_f));
            } else {
                backend.add(sum);
            }
        }
        return ffn_input(s);
    }
};

}  // namespace sdepth::inline v0
