// SPDX-License-Identifier: MIT
// The laws that every model type keeps, whatever its layers: gradients of the whole step against central differences,
// causality, decoding. They see a model through virtual calls, so they compile once for all types.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "sdepth/pipeline.hpp"
#include "support/random_batch.hpp"

namespace laws {

using namespace sdepth;

using sdepth_test::batch_sizes;
using sdepth_test::random_batch;

/// A model of any type in training, on the fp64 host backend.
class any_model {
  public:
    any_model() = default;
    any_model(const any_model&) = delete;
    any_model& operator=(const any_model&) = delete;
    virtual ~any_model() = default;

    virtual double* weights() = 0;
    /// Loss of one step with the routing losses at their weights; its gradients are left in place.
    virtual double loss(const random_batch& batch, bool packed) = 0;
    /// The same loss by the forward alone.
    virtual double forward_loss(const random_batch& batch, bool packed) = 0;
    /// The rows that every sparse layer chose in the last step, and the experts that took them.
    virtual std::vector<int> choices() = 0;

    const batch_sizes& sizes() const { return sizes_; }
    const std::vector<file_tensor>& tensors() const { return tensors_; }
    std::vector<double> gradient(const file_tensor& t) const;

  protected:
    batch_sizes sizes_;
    std::vector<file_tensor> tensors_;

    /// The gradient of the tensor whose weights lie at `offset`.
    virtual const double* gradient_at(long long offset, long long elements) const = 0;
    /// Random weights; norms and scales moved off their starts.
    void scatter_weights(std::uint64_t seed);
};

/// A decoder of any type, with one place to come back to.
class any_decoder {
  public:
    any_decoder() = default;
    any_decoder(const any_decoder&) = delete;
    any_decoder& operator=(const any_decoder&) = delete;
    virtual ~any_decoder() = default;

    virtual void reset() = 0;
    virtual void save() = 0;
    virtual void restore() = 0;
    virtual int length(std::size_t b) const = 0;
    virtual std::vector<std::vector<double>> extend(const std::vector<std::vector<int>>& tokens) = 0;
};

using logits_of = std::function<std::vector<double>(const batch_view&)>;

/// Every trained tensor: two elements of the gradient of each of its logical matrices against central differences of
/// order 6, |g - g_fd| <= 1e-6 max(|g|, 1e-3 rms(g)), rms over the tensor. The choices of sparse layers are held: an
/// element whose shifts all change one is left for another element.
void gradients_agree(any_model& model, bool packed, std::uint64_t seed);

/// Changing what follows changes no earlier logit, under the causal rule.
void prefix_is_independent(const batch_sizes& sizes, bool packed, std::uint64_t seed, const logits_of& logits);

/// Decoding token by token, and in passes, gives the logits of the full causal evaluation, and a decoder comes back to
/// a prefix.
void decoding_equals_evaluation(const batch_sizes& sizes, std::uint64_t seed, const logits_of& logits,
                                any_decoder& text);

/// A packed sequence has the losses of its documents alone, when selection respects documents.
void documents_are_apart(const batch_sizes& sizes, std::uint64_t seed,
                         const std::function<double(const batch_view&)>& evaluate);

}  // namespace laws
