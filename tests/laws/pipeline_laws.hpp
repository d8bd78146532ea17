// SPDX-License-Identifier: MIT
// Laws that every model type keeps on the host backend, whatever its layers: gradients of the whole step against
// central differences, causality, repeatability. One suite, run for each layer kind.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "sdepth/decoder.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "sdepth/pipeline.hpp"
#include "sdepth/random.hpp"
#include "support/catch.hpp"
#include "support/differences.hpp"

namespace laws {

using namespace sdepth;

/// A random micro-batch with documents and padding.
struct random_batch {
    std::vector<int> tokens, targets, documents, live;
    step_totals totals;

    template <class M, Run R>
    static random_batch of(std::uint64_t seed, bool packed) {
        random_batch batch;
        const auto rows = static_cast<std::size_t>(R.batch * R.seq);
        batch.tokens.resize(rows);
        batch.targets.assign(rows, -1);
        batch.documents.assign(rows, 0);
        batch.live.assign(static_cast<std::size_t>(R.batch), static_cast<int>(R.seq));
        for (std::size_t i = 0; i < rows; ++i) {
            const double u = random_uniform(seed, random_use::check, 0, i);
            batch.tokens[i] = static_cast<int>(u * static_cast<double>(M::dims.vocab));
        }
        for (std::size_t b = 0; b < static_cast<std::size_t>(R.batch); ++b) {
            const auto seq = static_cast<std::size_t>(R.seq);
            if (packed) {
                batch.live[b] = static_cast<int>(seq - b);  // the last sequences are padded
                for (std::size_t i = 0; i < seq; ++i) {
                    batch.documents[b * seq + i] = static_cast<int>(i >= seq / 3) + static_cast<int>(i >= seq - 4);
                }
            }
            const auto live = static_cast<std::size_t>(batch.live[b]);
            for (std::size_t i = 0; i + 1 < live; ++i) batch.targets[b * seq + i] = batch.tokens[b * seq + i + 1];
            batch.totals.targets += static_cast<long long>(live) - 1;
            batch.totals.rows += static_cast<long long>(live);
        }
        return batch;
    }
    batch_view view(bool packed) const {
        return {tokens.data(), targets.data(), packed ? documents.data() : nullptr, packed ? live.data() : nullptr};
    }
};

/// A model on the fp64 host backend with random weights, norms and scales moved off their starts.
template <class M, Run R>
class subject {
    using pipe = pipeline<M, host<double>, R>;

  public:
    explicit subject(std::uint64_t seed) : backend_(1), pipe_(backend_) {
        pipe_.initialise(seed);
        for_each_file_tensor<M>([&](const file_tensor& t) {
            for (long long i = 0; i < t.elements; ++i) {
                const double u =
                    random_normal(seed, random_use::check, detail::stream_of(t.name), static_cast<std::uint64_t>(i));
                double& w = weights()[t.offset + i];
                const tensor_row& tensor = t.row->tensor;
                // A recurrence starts with small steps; its gradients would lie below the rounding of differences.
                const bool steps = tensor.start.kind == init_kind::step_bias;
                if (steps || tensor.use == role::conv || tensor.use == role::recurrence || tensor.use == role::input) {
                    w = 0.5 * u;
                    continue;
                }
                w = tensor.trained ? (tensor.use == role::norm ? 1 + 0.2 * u : w + 0.1 * u) : 0.05 * u;
            }
        });
    }
    pipe& model() { return pipe_; }
    double* weights() { return pipe_.parameters().weights; }

    /// Loss of one step with the routing losses at their weights; its gradients are left in place.
    double loss(const random_batch& batch, bool packed) {
        pipe_.discard();
        pipe_.accumulate(batch.view(packed), batch.totals);
        const step_losses losses = pipe_.losses(batch.totals);
        return losses.total();
    }
    /// The rows that every sparse layer chose in the last step, and the experts that took them.
    std::vector<int> choices() {
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
    std::vector<double> gradient(const file_tensor& t) {
        const long long of_row = t.row->tensor.elements().value();
        const long long layer = t.row->stride == 0 ? 0 : (t.offset - t.row->offset) / t.row->stride;
        const long long start = t.row->offset_of(t.row->layers == 1 ? 0 : layer);
        const double* from = pipe_.parameters().gradients + mirrored<M>(start, of_row) + (t.offset - start);
        return {from, from + t.elements};
    }

  private:
    host<double> backend_;
    pipe pipe_;
};

/// Every trained tensor: two elements of its gradient against central differences of order 6,
/// |g - g_fd| <= 1e-6 max(|g|, 1e-3 rms(g)), rms over the tensor. The choices of sparse layers are held: an element
/// whose shifts all change one is left for another element.
template <class M, Run R>
void gradients_agree(bool packed, std::uint64_t seed = 3) {
    subject<M, R> model(seed);
    const auto batch = random_batch::of<M, R>(seed, packed);
    for_each_file_tensor<M>([&](const file_tensor& t) {
        if (!t.row->tensor.trained) return;
        model.loss(batch, packed);
        const std::vector<double> grad = model.gradient(t);
        const std::vector<int> choices = model.choices();
        double squares = 0;
        for (const double g : grad) squares += g * g;
        const double rms = std::sqrt(squares / static_cast<double>(grad.size()));
        int compared = 0;
        for (int sample = 0; sample < 12 && compared < 2; ++sample) {
            const double u = random_uniform(seed, random_use::check, detail::stream_of(t.name),
                                            static_cast<std::uint64_t>(1000 + sample));
            const auto i = static_cast<long long>(u * static_cast<double>(t.elements));
            double& w = model.weights()[t.offset + i];
            const double kept = w;
            const double g = grad[static_cast<std::size_t>(i)];
            const double tolerance = 1e-6 * std::max(std::abs(g), 1e-3 * rms);
            const auto fd = sdepth_test::differences([&](double shift, bool& held) {
                                w = kept + shift;
                                const double loss = model.loss(batch, packed);
                                held = held && model.choices() == choices;
                                return loss;
                            }).best(tolerance);
            w = kept;
            if (!std::isfinite(fd.error)) continue;
            INFO(t.name << "[" << i << "]: gradient " << g << ", differences " << fd.slope << " +- " << fd.error
                        << ", rms " << rms);
            CHECK(std::abs(g - fd.slope) <= tolerance);
            ++compared;
        }
        INFO(t.name << ": no element could be shifted without changing a choice");
        CHECK(compared > 0);
    });
}

/// Changing what follows changes no earlier logit, under the causal rule.
template <class M, Run R>
void prefix_is_independent(std::uint64_t seed = 5) {
    static_assert(is_causal<M>);
    subject<M, R> model(seed);
    auto batch = random_batch::of<M, R>(seed, false);
    const auto before = model.model().logits(batch.view(false));
    const auto seq = static_cast<std::size_t>(R.seq), vocab = static_cast<std::size_t>(M::dims.vocab);
    for (std::size_t cut = 1; cut < seq; cut += 3) {
        auto changed = batch;
        for (std::size_t b = 0; b < static_cast<std::size_t>(R.batch); ++b) {
            for (std::size_t i = cut; i < seq; ++i) {
                int& token = changed.tokens[b * seq + i];
                token = (token + 1) % static_cast<int>(M::dims.vocab);
            }
        }
        const auto after = model.model().logits(changed.view(false));
        bool equal = true, moved = false;
        for (std::size_t b = 0; b < static_cast<std::size_t>(R.batch); ++b) {
            const auto row = [&](std::size_t i) { return (b * seq + i) * vocab; };
            equal = equal && std::equal(before.begin() + static_cast<std::ptrdiff_t>(row(0)),
                                        before.begin() + static_cast<std::ptrdiff_t>(row(cut)),
                                        after.begin() + static_cast<std::ptrdiff_t>(row(0)));
            moved = moved || before[row(cut)] != after[row(cut)];
        }
        INFO("suffix from row " << cut);
        CHECK(equal);
        CHECK(moved);
    }
}

/// Decoding token by token, and in passes of up to `Pass` tokens, gives the logits of the full causal evaluation.
template <class M, Run R, long long Pass = 4>
void decoding_equals_evaluation(std::uint64_t seed = 6) {
    subject<M, R> model(seed);
    const auto batch = random_batch::of<M, R>(seed, false);
    const auto full = model.model().logits(batch.view(false));
    const auto seq = static_cast<std::size_t>(R.seq), vocab = static_cast<std::size_t>(M::dims.vocab);
    host<double> backend(1);
    constexpr Run passes{.seq = Pass, .batch = R.batch, .context = R.seq};
    decoder<M, host<double>, passes> text(backend);
    std::copy_n(model.weights(), tensor_table<M>.elements, text.parameters().weights);

    // Sequence 0 starts with `head` tokens at once, the others one later each; then all go on token by token.
    for (const std::size_t head : {std::size_t{1}, std::size_t{3}, std::size_t{9}, seq}) {
        text.reset();
        std::vector<std::size_t> done(static_cast<std::size_t>(R.batch), 0);
        for (std::size_t pass = 0; pass < seq + static_cast<std::size_t>(R.batch); ++pass) {
            std::vector<std::vector<int>> next(done.size());
            for (std::size_t b = 0; b < done.size(); ++b) {
                const std::size_t wanted = pass < b ? 0 : pass == b ? head : 1;
                for (std::size_t i = 0; i < wanted && done[b] + i < seq; ++i) {
                    next[b].push_back(batch.tokens[b * seq + done[b] + i]);
                }
                done[b] += next[b].size();
            }
            const auto logits = text.extend(next);
            for (std::size_t b = 0; b < done.size(); ++b) {
                if (next[b].empty()) continue;
                for (std::size_t v = 0; v < vocab; ++v) {
                    const double expected = full[(b * seq + done[b] - 1) * vocab + v];
                    INFO("sequence " << b << ", row " << done[b] - 1 << ", first pass " << head << ", logit " << v);
                    REQUIRE(std::abs(logits[b][v] - expected) <= 1e-10 * std::max(1.0, std::abs(expected)));
                }
            }
        }
        CHECK(done == std::vector<std::size_t>(done.size(), seq));
    }

    // Back to a prefix after other tokens: the same logits bit for bit as without them.
    const auto tokens = [&](std::size_t from, std::size_t to) {
        std::vector<std::vector<int>> some;
        for (std::size_t b = 0; b < static_cast<std::size_t>(R.batch); ++b) {
            const auto begin = batch.tokens.begin() + static_cast<std::ptrdiff_t>(b * seq);
            some.emplace_back(begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(to));
        }
        return some;
    };
    text.reset();
    text.extend(tokens(0, 5));
    const auto prefix = text.save();
    const auto expected = text.extend(tokens(5, 8));
    text.restore(prefix);
    CHECK(text.extend(tokens(7, seq)) != expected);
    text.restore(prefix);
    CHECK(text.length(0) == 5);
    CHECK(text.extend(tokens(5, 8)) == expected);
}

/// A packed sequence has the losses of its documents alone, when selection respects documents.
template <class M, Run R>
void documents_are_apart(std::uint64_t seed = 9) {
    subject<M, R> model(seed);
    auto batch = random_batch::of<M, R>(seed, true);
    const auto seq = static_cast<std::size_t>(R.seq);
    // Only the last document of each sequence has targets; then change every token of the first.
    for (std::size_t i = 0; i < batch.targets.size(); ++i) {
        if (batch.documents[i] < 2) batch.targets[i] = -1;
    }
    const double before = model.model().evaluate(batch.view(true), selection_rule::top);
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
        if (i % seq < seq / 3) batch.tokens[i] = (batch.tokens[i] + 1) % static_cast<int>(M::dims.vocab);
    }
    CHECK(before != 0);
    CHECK(model.model().evaluate(batch.view(true), selection_rule::top) == before);
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
