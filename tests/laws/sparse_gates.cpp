// SPDX-License-Identifier: MIT
// The laws for sparse depth over the policies of its gate, and what its gradients and skipped rows are.
#include <algorithm>

#include "laws/models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

TEST_CASE("sparse gates keep the laws") { keep_the_laws(gate_models{}); }

TEST_CASE("sparse gates: a detached routing loss passes the gates") {
    passes_the_gates<Detached>();  // its gradient is not that of the total loss
}

TEST_CASE("sparse gates: a detached routing loss reaches the router alone") {
    // Without its routing loss the model's other gradients are the same, bit for bit; the router's are not.
    subject<Detached, short_run> with(3);
    subject<NoRoutingLoss, short_run> without(3);
    const auto batch = random_batch::of<Detached, short_run>(3, true);
    with.loss(batch, true);
    without.loss(batch, true);
    bool routers_differ = false;
    for_each_file_tensor<Detached>([&](const file_tensor& t) {
        if (t.row->tensor.use == role::router) {
            routers_differ = routers_differ || with.gradient(t) != without.gradient(t);
        } else {
            INFO(t.name);
            CHECK(with.gradient(t) == without.gradient(t));
        }
    });
    CHECK(routers_differ);
}

TEST_CASE("sparse gates: the language loss alone reaches the router") {
    subject<NoRoutingLoss, short_run> model(3);
    model.loss(random_batch::of<NoRoutingLoss, short_run>(3, false), false);
    for_each_file_tensor<NoRoutingLoss>([&](const file_tensor& t) {
        if (t.row->tensor.use != role::router) return;
        for (const double g : model.gradient(t)) CHECK(g != 0);
    });
}

TEST_CASE("sparse gates: the rows that a layer skips are untouched, those that it chooses are not") {
    // One sparse layer after an anchor: logits of skipped rows equal those of the model without the layer.
    subject<OneSparse, short_run> with(3);
    subject<OneAnchor, short_run> without(3);
    const auto batch = random_batch::of<OneSparse, short_run>(3, false);
    const std::size_t seq = with.sizes().seq, vocab = with.sizes().vocab;
    std::vector<bool> chosen(batch.tokens.size(), false);
    with.model().evaluate(batch.view(false), selection_rule::threshold, [&](long long, const auto& rows) {
        for (std::size_t b = 0; b < with.sizes().batch; ++b) {
            for (int j = 0; j < rows.live[b]; ++j) {
                chosen[b * seq + static_cast<std::size_t>(rows.ids[b * seq + static_cast<std::size_t>(j)])] = true;
            }
        }
    });
    const auto a = with.model().logits(batch.view(false));
    const auto b = without.model().logits(batch.view(false));
    std::vector<bool> changed;
    for (std::size_t row = 0; row < batch.tokens.size(); ++row) {
        const auto at = static_cast<std::ptrdiff_t>(row * vocab), end = static_cast<std::ptrdiff_t>((row + 1) * vocab);
        changed.push_back(!std::equal(a.begin() + at, a.begin() + end, b.begin() + at));
    }
    CHECK(changed == chosen);
    CHECK(std::count(chosen.begin(), chosen.end(), true) > 0);
    CHECK(std::count(chosen.begin(), chosen.end(), false) > 0);
}
