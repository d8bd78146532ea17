// SPDX-License-Identifier: MIT
// The laws for capacities, noise and experts that choose; what an optimiser step counts, and when.
#include <algorithm>
#include <cstddef>

#include "laws/expert_models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

namespace {

constexpr Run full_replay{.seq = 13, .batch = 2, .max_documents = 3, .replay = recompute::full};
constexpr Run selective_replay{.seq = 13, .batch = 2, .max_documents = 3, .replay = recompute::selective};

long long sum(const std::vector<long long>& load) {
    long long all = 0;
    for (const long long n : load) all += n;
    return all;
}

// Losses of a step and all gradients.
template <class M, Run R>
std::vector<double> step_of() {
    subject<M, R> model(3);
    const auto batch = random_batch::of<M, R>(3, true);
    model.model().accumulate(batch.view(true), batch.totals);
    const step_losses losses = model.model().losses(batch.totals);
    std::vector<double> all(model.model().parameters().gradients,
                            model.model().parameters().gradients + tensor_table<M>.elements);
    all.insert(all.end(), {losses.language, losses.balance, losses.router_z, losses.weighted_experts});
    for (const expert_load& layer : losses.experts) all.insert(all.end(), layer.load.begin(), layer.load.end());
    return all;
}

// Memory that starts as NaN everywhere.
struct poisoned_host : host<double> {
    using host<double>::host;
    memory allocate(std::size_t bytes) {
        memory all = host<double>::allocate(bytes);
        std::fill_n(all.data(), bytes, std::byte{0xff});
        return all;
    }
};

// Gradients of a step from first values, where biases send every row to the first two experts.
template <class M, class Backend>
std::vector<double> collapsed_step() {
    Backend backend(1);
    pipeline<M, Backend, short_run> model(backend);
    model.initialise(1);
    for_each_file_tensor<M>([&](const file_tensor& t) {
        for (long long i = 0; i < t.elements; ++i) {
            if (t.row->tensor.use == role::expert_bias) model.parameters().weights[t.offset + i] = i < 2 ? 10 : 0;
        }
    });
    const auto batch = random_batch::of<M, short_run>(3, true);
    model.accumulate(batch.view(true), batch.totals);
    model.evaluate(batch.view(true), selection_rule::threshold);
    for_each_file_tensor<M>([&](const file_tensor& t) {
        const bool third = t.name.find("experts.2.") != std::string::npos && t.name.find("shared") == std::string::npos;
        if (!third) return;
        const long long all = t.row->tensor.elements().value();
        const double* grad = model.parameters().gradients + mirrored<M>(t.row->offset, all) + 2 * t.elements;
        for (long long i = 0; i < t.elements; ++i) CHECK(grad[i] == 0);
    });
    return {model.parameters().gradients, model.parameters().gradients + tensor_table<M>.elements};
}

}  // namespace

TEST_CASE("expert routing: nobody reads memory that nobody wrote; an expert without rows has no gradient") {
    // The expert layer stands alone in its run, so its tensors start at the row's offset.
    CHECK(collapsed_step<Steered, poisoned_host>() == collapsed_step<Steered, host<double>>());
    using SteeredInSparse = Model<dense + sparse<2>(moe<6, 2, steered_policy>) + dense, with_experts>;
    CHECK(collapsed_step<SteeredInSparse, poisoned_host>() == collapsed_step<SteeredInSparse, host<double>>());
}

TEST_CASE("expert routing: capacities and noise are of training alone") {
    subject<Skipping, short_run> model(3);
    const auto batch = random_batch::of<Skipping, short_run>(3, true);
    std::vector<expert_load> loads;
    model.model().evaluate(
        batch.view(true), selection_rule::threshold, [](auto&&...) {}, &loads);
    REQUIRE(loads.size() == 1);
    CHECK(loads[0].dropped == 0);
    CHECK(sum(loads[0].load) == 2 * batch.totals.rows);
    model.loss(batch, true);
    const auto trained = model.model().expert_loads();
    CHECK(trained[0].dropped > 0);
    CHECK(sum(trained[0].load) == 2 * batch.totals.rows);
}

TEST_CASE("expert routing: steps repeat bit for bit") {
    steps_repeat<Noisy, short_run>();
    steps_repeat<ExpertChoice, short_run>();
    steps_repeat<Base, short_run>();
}

TEST_CASE("expert routing: a replay changes no loss, no gradient, no count") {
    CHECK(step_of<Steered, short_run>() == step_of<Steered, full_replay>());
    CHECK(step_of<Steered, short_run>() == step_of<Steered, selective_replay>());
    CHECK(step_of<Rerouting, short_run>() == step_of<Rerouting, full_replay>());
    CHECK(step_of<Noisy, short_run>() == step_of<Noisy, full_replay>());
    CHECK(step_of<SparseExperts, short_run>() == step_of<SparseExperts, full_replay>());
}

TEST_CASE("expert routing: padding and skipped rows do not count") {
    subject<SparseExperts, short_run> model(3);
    const auto batch = random_batch::of<SparseExperts, short_run>(3, true);
    model.loss(batch, true);
    const auto loads = model.model().expert_loads();
    REQUIRE(loads.size() == 2);
    for (const expert_load& layer : loads) {
        CHECK(layer.rows == 7 + 6);  // ceil(13 / 2) + ceil(12 / 2)
        CHECK(sum(layer.load) == 2 * layer.rows);
        CHECK(layer.entropy > 0);
        CHECK(layer.imbalance() >= 1);
    }
    CHECK(loads[0].layer == 1);
}

TEST_CASE("expert routing: biases move once a step, by the counts of all its micro-batches") {
    subject<LoopedExperts, short_run> model(3);
    const auto biases = [&] {
        std::vector<std::vector<double>> all;
        for_each_file_tensor<LoopedExperts>([&](const file_tensor& t) {
            if (t.row->tensor.use != role::expert_bias) return;
            all.emplace_back(model.weights() + t.offset, model.weights() + t.offset + t.elements);
            for (const double g : model.gradient(t)) CHECK(g == 0);
        });
        return all;
    };
    const auto before = biases();
    step_totals totals;
    for (const std::uint64_t seed : {3u, 4u})
        totals.targets += random_batch::of<LoopedExperts, short_run>(seed, true).totals.targets;
    totals.rows = 2 * 25;
    model.model().discard();
    for (const std::uint64_t seed : {3u, 4u}) {
        model.model().accumulate(random_batch::of<LoopedExperts, short_run>(seed, true).view(true), totals);
        CHECK(biases() == before);
    }
    const step_losses losses = model.model().update({.rate = 0, .decay = 0}, totals);
    const auto after = biases();
    REQUIRE(before.size() == 2);
    REQUIRE(losses.experts.size() == 2);
    for (std::size_t layer = 0; layer < 2; ++layer) {
        const expert_load& counted = losses.experts[layer];
        CHECK(counted.rows == 2 * totals.rows);  // a loop passes twice
        CHECK(sum(counted.load) == 2 * counted.rows);
        for (std::size_t e = 0; e < counted.load.size(); ++e) {
            const long long less = sum(counted.load) - 3 * counted.load[e];
            const double step = less > 0 ? 1e-3 : less < 0 ? -1e-3 : 0;
            CHECK(after[layer][e] == before[layer][e] + step);
        }
    }
}

TEST_CASE("expert routing: micro-batches add up to the mean of their balance losses") {
    subject<Mixtral, short_run> model(3);
    double apart = 0;
    step_totals totals;
    for (const std::uint64_t seed : {3u, 4u}) {
        const auto batch = random_batch::of<Mixtral, short_run>(seed, false);
        model.loss(batch, false);
        apart += model.model().losses(batch.totals).balance / 2;
        totals.targets += batch.totals.targets;
        totals.rows += batch.totals.rows;
    }
    model.model().discard();
    for (const std::uint64_t seed : {3u, 4u}) {
        model.model().accumulate(random_batch::of<Mixtral, short_run>(seed, false).view(false), totals);
    }
    CHECK(model.model().losses(totals).balance == Approx(apart).epsilon(1e-12));
}

TEST_CASE("expert routing: no routed output leaves exactly the shared one") {
    // The experts' last matrices are zero: the logits are those of the model with any other routed experts.
    using Routed = Model<moe<6, 2, moe_policy{.shared = 2}>, with_experts>;
    std::vector<double> first;
    for (const std::uint64_t seed : {3u, 4u}) {
        subject<Routed, short_run> model(3), other(seed);
        for_each_file_tensor<Routed>([&](const file_tensor& t) {
            const bool routed = t.name.find("mlp.experts") != std::string::npos;
            const bool last = routed && t.name.find("down_proj") != std::string::npos;
            for (long long i = 0; i < t.elements; ++i) {
                if (routed) model.weights()[t.offset + i] = last ? 0 : other.weights()[t.offset + i];
            }
        });
        const auto logits = model.model().logits(random_batch::of<Routed, short_run>(3, false).view(false));
        if (first.empty()) first = logits;
        CHECK(logits == first);
    }
}
