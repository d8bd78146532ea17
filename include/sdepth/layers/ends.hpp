// SPDX-License-Identifier: MIT
// The ends of every model: embedding, final norm, output head. Rank 2.
#pragma once

#include "sdepth/layer.hpp"

namespace sdepth::inline v0 {

/// logits = W_head norm(x), x starting as rows of the embedding; with `Dims::tied` the head is the embedding.
struct Ends {
    static constexpr double norm_epsilon = 1e-6;

    /// Tensors before the layers; full names, for they belong to no layer.
    static constexpr tensor_rows first(const Dims& d) {
        tensor_rows rows;
        tensor_row embedding = matrix("model.embed_tokens.weight", role::embedding, d.vocab, d.width);
        embedding.scope = d.tied ? row_scope::own : row_scope::none;  // tied, it is the head's matrix as well
        embedding.group = update_group::adamw;
        rows.add(embedding);
        return rows;
    }
    /// Tensors after the layers.
    static constexpr tensor_rows last(const Dims& d) {
        tensor_rows rows;
        rows.add(vector("model.norm.weight", role::norm, d.width, {init_kind::ones, 1}));
        if (!d.tied) {
            tensor_row head = matrix("lm_head.weight", role::head, d.vocab, d.width);
            head.group = update_group::adamw;
            rows.add(head);
        }
        return rows;
    }
    static constexpr verdict check(const Dims& d) {
        using detail::require_size;
        return detail::first_broken(require_size(d.width, size_name::width), require_size(d.vocab, size_name::vocab));
    }
    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims& d) {
        sink.function("tied head", d.tied);
        sink.function("final norm epsilon", norm_epsilon);
    }
};

}  // namespace sdepth::inline v0
