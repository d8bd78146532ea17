// SPDX-License-Identifier: MIT
// The laws for a model type: `laws/any_model.hpp` says what they are.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "laws/any_model.hpp"
#include "laws/models.hpp"
#include "sdepth/decoder.hpp"
#include "sdepth/pipeline.hpp"
#include "sdepth/random.hpp"
#include "support/catch.hpp"
#include "support/host_operations.hpp"

namespace laws {

/// A model on the fp64 host backend with random weights, norms and scales moved off their starts.
template <class M, Run R>
class subject : public any_model {
    using pipe = pipeline<M, host<double>, R>;

  public:
    explicit subject(std::uint64_t seed) : backend_(1), pipe_(backend_) {
        sizes_ = batch_sizes::of<M, R>();
        for_each_file_tensor<M>([&](const file_tensor& t) { tensors_.push_back(t); });
        pipe_.initialise(seed);
        scatter_weights(seed);
    }
    pipe& model() { return pipe_; }
    logits_of logits() {
        return [this](const batch_view& batch) { return pipe_.logits(batch); };
    }

    double* weights() final { return pipe_.parameters().weights; }
    double loss(const random_batch& batch, bool packed) final {
        pipe_.discard();
        pipe_.accumulate(batch.view(packed), batch.totals);
        return pipe_.losses(batch.totals).total();
    }
    double forward_loss(const random_batch& batch, bool packed) final {
        pipe_.discard();
        pipe_.forward(batch.view(packed));
        return pipe_.losses(batch.totals).total();
    }
    std::vector<int> choices() final {
        std::vector<int> all;
        pipe_.for_each_routed_layer([&](long long, const auto& saved, int capacity) {
            for (int b = 0; b < static_cast<int>(R.batch); ++b) {
                all.push_back(saved.live[b]);
                all.insert(all.end(), saved.ids + b * capacity, saved.ids + b * capacity + saved.live[b]);
            }
        });
        pipe_.for_each_expert_choice(
            [&]<class F>(long long, const auto& experts, const batch_rows& rows, std::type_identity<F>) {
                all.insert(all.end(), experts.wanted, experts.wanted + rows.batch * F::experts);
                for (int b = 0; b < rows.batch; ++b) {
                    const long long first = rows.first(b) * F::ways, end = (rows.first(b) + rows.each.of(b)) * F::ways;
                    all.insert(all.end(), experts.chosen + first, experts.chosen + end);
                    all.insert(all.end(), experts.slot + first, experts.slot + end);
                }
            });
        return all;
    }

  private:
    const double* gradient_at(long long offset, long long elements) const final {
        return pipe_.parameters().gradients + mirrored<M>(offset, elements);
    }

    host<double> backend_;
    pipe pipe_;
};

/// A decoder of model M with its weights, in passes of up to `Pass` tokens.
template <class M, Run R, long long Pass>
class text_of : public any_decoder {
    static constexpr Run passes{.seq = Pass, .batch = R.batch, .context = R.seq};
    using decoder_type = decoder<M, host<double>, passes>;

  public:
    explicit text_of(const double* weights) : backend_(1), decoder_(backend_) {
        std::copy_n(weights, tensor_table<M>.elements, decoder_.parameters().weights);
    }
    void reset() final { decoder_.reset(); }
    void save() final { kept_.emplace(decoder_.save()); }
    void restore() final { decoder_.restore(*kept_); }
    int length(std::size_t b) const final { return decoder_.length(b); }
    std::vector<std::vector<double>> extend(const std::vector<std::vector<int>>& tokens) final {
        return decoder_.extend(tokens);
    }

  private:
    host<double> backend_;
    decoder_type decoder_;
    std::optional<typename decoder_type::snapshot> kept_;
};

template <class M, Run R>
void gradients_agree(bool packed, std::uint64_t seed = 3) {
    subject<M, R> model(seed);
    gradients_agree(model, packed, seed);
}

template <class M, Run R>
void prefix_is_independent(std::uint64_t seed = 5) {
    static_assert(is_causal<M>);
    subject<M, R> model(seed);
    for (const bool packed : {false, true}) prefix_is_independent(model.sizes(), packed, seed, model.logits());
}

template <class M, Run R, long long Pass = 4>
void decoding_equals_evaluation(std::uint64_t seed = 6) {
    subject<M, R> model(seed);
    text_of<M, R, Pass> text(model.weights());
    decoding_equals_evaluation(model.sizes(), seed, model.logits(), text);
}

template <class M, Run R>
void documents_are_apart(std::uint64_t seed = 9) {
    subject<M, R> model(seed);
    documents_are_apart(model.sizes(), seed,
                        [&](const batch_view& batch) { return model.model().evaluate(batch, selection_rule::top); });
}

/// Whether training of model M chooses among the rows of a document, wherever it chooses rows.
template <class M>
constexpr bool selects_by_document() {
    bool all = true;
    for (const layer_run& r : M::runs) {
        visit_type(typename M::kinds{}, r.kind, [&]<class L>(std::type_identity<L>) {
            if constexpr (layer_pass<L>::is_sparse) {
                all = all && layer_pass<L>::policy.scope == selection_scope::document;
            }
        });
    }
    return all;
}

/// What holds for a model whose routing sees no future, whatever its gradients.
template <class M>
void passes_the_gates() {
    if constexpr (is_causal<M>) {
        prefix_is_independent<M, short_run>();
        decoding_equals_evaluation<M, short_run>();
        if constexpr (selects_by_document<M>()) documents_are_apart<M, short_run>();
    }
}

/// Which batches the gradient law takes: packed ones have documents and padding.
enum class batches { packed, both };

/// Every law that model M can keep: that is, nobody can add a model to one law alone.
template <class M>
void keeps_the_laws(batches taken) {
    if (taken == batches::both) gradients_agree<M, short_run>(false);
    gradients_agree<M, short_run>(true);
    passes_the_gates<M>();
}
template <class... Ms>
void keep_the_laws(models<Ms...>, batches taken = batches::both) {
    int number = 0;
    const auto keep = [&]<class M>(std::type_identity<M>) {
        INFO("model " << ++number << " of the list");
        keeps_the_laws<M>(taken);
    };
    (keep(std::type_identity<Ms>{}), ...);
}

/// Decoders whose passes have room for one token.
template <class... Ms>
void decode_one_by_one(models<Ms...>) {
    (decoding_equals_evaluation<Ms, short_run, 1>(), ...);
}

/// Two runs of a few steps give the same bits.
template <class M, Run R>
void steps_repeat() {
    std::vector<double> ends[2];
    for (auto& end : ends) {
        host<double> backend(2);
        pipeline<M, host<double>, R> model(backend);
        model.initialise(1);
        for (std::uint64_t step = 0; step < 3; ++step) {
            const auto batch = random_batch::of<M, R>(step, true);
            model.accumulate(batch.view(true), batch.totals);
            model.update({.rate = 1e-2, .step = static_cast<long long>(step) + 1}, batch.totals);
        }
        end.assign(model.parameters().weights, model.parameters().weights + tensor_table<M>.elements);
    }
    CHECK(ends[0] == ends[1]);
}

/// A step between whose micro-batches evaluations come ends with the same bits as without them.
template <class M, Run R>
void evaluations_leave_the_step() {
    std::vector<double> ends[2];
    const auto first = random_batch::of<M, R>(1, true), second = random_batch::of<M, R>(2, true);
    const step_totals totals{first.totals.targets + second.totals.targets, first.totals.rows + second.totals.rows};
    for (const bool evaluates : {false, true}) {
        subject<M, R> model(3);
        auto& pipe = model.model();
        for (const random_batch* batch : {&first, &second}) {
            pipe.accumulate(batch->view(true), totals);
            if (!evaluates) continue;
            pipe.evaluate(batch->view(true), selection_rule::top);
            pipe.evaluate(first.view(false), selection_rule::threshold);
            pipe.logits(second.view(true));
        }
        const step_losses losses = pipe.update({.rate = 1e-2}, totals);
        std::vector<double>& end = ends[evaluates ? 1 : 0];
        end.assign(model.weights(), model.weights() + tensor_table<M>.elements);
        end.push_back(losses.total());
        for (const expert_load& layer : losses.experts) end.insert(end.end(), layer.load.begin(), layer.load.end());
    }
    CHECK(ends[0] == ends[1]);
}

/// Gradients of one batch are the same bits whatever the backward computes again; `R` computes nothing again.
template <class M, Run R>
void replays_change_no_bit() {
    constexpr auto replaying = [](recompute replay) {
        Run r = R;
        r.replay = replay;
        return r;
    };
    const auto gradients = [](auto& model) {
        model.loss(random_batch::of<M, R>(4, true), true);
        const double* g = model.model().parameters().gradients;
        return std::vector<double>(g, g + tensor_table<M>.elements);
    };
    subject<M, R> kept(2);
    subject<M, replaying(recompute::full)> all(2);
    subject<M, replaying(recompute::selective)> some(2);
    const auto expected = gradients(kept);
    CHECK(gradients(all) == expected);
    CHECK(gradients(some) == expected);
}

}  // namespace laws
