// SPDX-License-Identifier: MIT
#include <algorithm>
#include <cmath>
#include <string>

#include "laws/any_model.hpp"
#include "sdepth/random.hpp"
#include "support/catch.hpp"
#include "support/differences.hpp"

namespace laws {

void any_model::scatter_weights(std::uint64_t seed) {
    for (const file_tensor& t : tensors_) {
        const tensor_row& tensor = t.row->tensor;
        for (long long i = 0; i < t.elements; ++i) {
            const double u =
                random_normal(seed, random_use::check, detail::stream_of(t.name), static_cast<std::uint64_t>(i));
            double& w = weights()[t.offset + i];
            // A recurrence starts with small steps; its gradients would lie below the rounding of differences.
            const bool steps = tensor.start.kind == init_kind::step_bias;
            if (steps || tensor.use == role::conv || tensor.use == role::recurrence || tensor.use == role::input) {
                w = 0.5 * u;
                continue;
            }
            w = tensor.trained ? (tensor.use == role::norm ? 1 + 0.2 * u : w + 0.1 * u) : 0.05 * u;
        }
    }
}

std::vector<double> any_model::gradient(const file_tensor& t) const {
    const long long of_row = t.row->tensor.elements().value();
    const long long layer = t.row->stride == 0 ? 0 : (t.offset - t.row->offset) / t.row->stride;
    const long long start = t.row->offset_of(t.row->layers == 1 ? 0 : layer);
    const double* from = gradient_at(start, of_row) + (t.offset - start);
    return {from, from + t.elements};
}

void gradients_agree(any_model& model, bool packed, std::uint64_t seed) {
    const random_batch batch(model.sizes(), seed, packed);
    const double loss = model.loss(batch, packed);
    const std::vector<int> choices = model.choices();
    std::vector<std::vector<double>> gradients;
    for (const file_tensor& t : model.tensors()) gradients.push_back(model.gradient(t));
    CHECK(model.forward_loss(batch, packed) == loss);  // the differences are of the loss that the gradient is of
    CHECK(model.choices() == choices);

    for (std::size_t k = 0; k < gradients.size(); ++k) {
        const file_tensor& t = model.tensors()[k];
        if (!t.row->tensor.trained) continue;
        const std::vector<double>& grad = gradients[k];
        double squares = 0;
        for (const double g : grad) squares += g * g;
        const double rms = std::sqrt(squares / static_cast<double>(grad.size()));
        const long long cols = std::max(1LL, t.row->tensor.cols);
        t.row->tensor.for_each_part([&](long long first, long long rows) {
            int compared = 0;
            for (int sample = 0; sample < 12 && compared < 2; ++sample) {
                const double u = random_uniform(seed, random_use::check, detail::stream_of(t.name),
                                                static_cast<std::uint64_t>(1000 + sample));
                const auto i = first * cols + static_cast<long long>(u * static_cast<double>(rows * cols));
                double& w = model.weights()[t.offset + i];
                const double kept = w;
                const double g = grad[static_cast<std::size_t>(i)];
                const double tolerance = 1e-6 * std::max(std::abs(g), 1e-3 * rms);
                const auto fd = sdepth_test::differences([&](double shift, bool& held) {
                                    w = kept + shift;
                                    const double there = model.forward_loss(batch, packed);
                                    held = held && model.choices() == choices;
                                    return there;
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
}

void prefix_is_independent(const batch_sizes& sizes, bool packed, std::uint64_t seed, const logits_of& logits) {
    const random_batch batch(sizes, seed, packed);
    const auto before = logits(batch.view(packed));
    const std::size_t seq = sizes.seq, vocab = sizes.vocab;
    for (std::size_t cut = 1; cut < seq; cut += 3) {
        auto changed = batch;
        for (std::size_t b = 0; b < sizes.batch; ++b) {
            for (std::size_t i = cut; i < seq; ++i) {
                int& token = changed.tokens[b * seq + i];
                token = (token + 1) % static_cast<int>(vocab);
            }
        }
        const auto after = logits(changed.view(packed));
        bool equal = true, moved = false;
        for (std::size_t b = 0; b < sizes.batch; ++b) {
            const auto row = [&](std::size_t i) { return (b * seq + i) * vocab; };
            equal = equal && std::equal(before.begin() + static_cast<std::ptrdiff_t>(row(0)),
                                        before.begin() + static_cast<std::ptrdiff_t>(row(cut)),
                                        after.begin() + static_cast<std::ptrdiff_t>(row(0)));
            moved = moved || before[row(cut)] != after[row(cut)];
        }
        INFO("suffix from row " << cut << (packed ? ", packed" : ""));
        CHECK(equal);
        CHECK(moved);
    }
}

namespace {

/// Sequence 0 starts with `head` tokens at once, the others one later each; then all go on token by token.
void decodes_from(std::size_t head, const batch_sizes& sizes, const random_batch& batch,
                  const std::vector<double>& full, any_decoder& text) {
    text.reset();
    std::vector<std::size_t> done(sizes.batch, 0);
    for (std::size_t pass = 0; pass < sizes.seq + sizes.batch; ++pass) {
        std::vector<std::vector<int>> next(done.size());
        for (std::size_t b = 0; b < done.size(); ++b) {
            const std::size_t wanted = pass < b ? 0 : pass == b ? head : 1;
            for (std::size_t i = 0; i < wanted && done[b] + i < sizes.seq; ++i) {
                next[b].push_back(batch.tokens[b * sizes.seq + done[b] + i]);
            }
            done[b] += next[b].size();
        }
        const auto logits = text.extend(next);
        for (std::size_t b = 0; b < done.size(); ++b) {
            if (next[b].empty()) continue;
            for (std::size_t v = 0; v < sizes.vocab; ++v) {
                const double expected = full[(b * sizes.seq + done[b] - 1) * sizes.vocab + v];
                INFO("sequence " << b << ", row " << done[b] - 1 << ", first pass " << head << ", logit " << v);
                REQUIRE(std::abs(logits[b][v] - expected) <= 1e-10 * std::max(1.0, std::abs(expected)));
            }
        }
    }
    CHECK(done == std::vector<std::size_t>(done.size(), sizes.seq));
}

/// Back to a prefix after other tokens: the same logits bit for bit as without them.
void comes_back(const batch_sizes& sizes, const random_batch& batch, any_decoder& text) {
    const auto tokens = [&](std::size_t from, std::size_t to) {
        std::vector<std::vector<int>> some;
        for (std::size_t b = 0; b < sizes.batch; ++b) {
            const auto begin = batch.tokens.begin() + static_cast<std::ptrdiff_t>(b * sizes.seq);
            some.emplace_back(begin + static_cast<std::ptrdiff_t>(from), begin + static_cast<std::ptrdiff_t>(to));
        }
        return some;
    };
    text.reset();
    text.extend(tokens(0, 5));
    text.save();
    const auto expected = text.extend(tokens(5, 8));
    text.restore();
    CHECK(text.extend(tokens(7, sizes.seq)) != expected);
    text.restore();
    CHECK(text.length(0) == 5);
    CHECK(text.extend(tokens(5, 8)) == expected);
}

}  // namespace

void decoding_equals_evaluation(const batch_sizes& sizes, std::uint64_t seed, const logits_of& logits,
                                any_decoder& text) {
    const random_batch batch(sizes, seed, false);
    const auto full = logits(batch.view(false));
    for (const std::size_t head : {std::size_t{1}, std::size_t{3}, std::size_t{9}, sizes.seq}) {
        decodes_from(head, sizes, batch, full, text);
    }
    comes_back(sizes, batch, text);
}

void documents_are_apart(const batch_sizes& sizes, std::uint64_t seed,
                         const std::function<double(const batch_view&)>& evaluate) {
    random_batch batch(sizes, seed, true);
    // Only the last document of each sequence has targets; then change every token of the first.
    for (std::size_t i = 0; i < batch.targets.size(); ++i) {
        if (batch.documents[i] < 2) batch.targets[i] = -1;
    }
    const double before = evaluate(batch.view(true));
    for (std::size_t i = 0; i < batch.tokens.size(); ++i) {
        if (i % sizes.seq < sizes.seq / 3) batch.tokens[i] = (batch.tokens[i] + 1) % static_cast<int>(sizes.vocab);
    }
    CHECK(before != 0);
    CHECK(evaluate(batch.view(true)) == before);
}

}  // namespace laws
