// SPDX-License-Identifier: MIT
// The laws for sparse depth over the policies of its router and gate.
#include "laws/models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

TEST_CASE("sparse routing: gradients agree with differences") {
    for (const bool packed : {false, true}) {
        gradients_agree<XMoD, short_run>(packed);
        gradients_agree<MoD, short_run>(packed);
        gradients_agree<Printed, short_run>(packed);
        gradients_agree<Raw, short_run>(packed);
        gradients_agree<Ungated, short_run>(packed);
        gradients_agree<Unscaled, short_run>(packed);
        gradients_agree<Unbiased, short_run>(packed);
    }
}

TEST_CASE("sparse routing: no suffix reaches a prefix") {
    prefix_is_independent<XMoD, short_run>();
    prefix_is_independent<MoD, short_run>();
    prefix_is_independent<Printed, short_run>();
    prefix_is_independent<Raw, short_run>();
    prefix_is_independent<Unbiased, short_run>();
}

TEST_CASE("sparse routing: steps repeat bit for bit") { steps_repeat<XMoD, short_run>(); }

TEST_CASE("sparse routing: a detached routing loss reaches the router alone") {
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

TEST_CASE("sparse routing: the language loss alone reaches the router") {
    subject<NoRoutingLoss, short_run> model(3);
    model.loss(random_batch::of<NoRoutingLoss, short_run>(3, false), false);
    for_each_file_tensor<NoRoutingLoss>([&](const file_tensor& t) {
        if (t.row->tensor.use != role::router) return;
        for (const double g : model.gradient(t)) CHECK(g != 0);
    });
}

TEST_CASE("sparse routing: a skipped row is untouched, a chosen one is not") {
    // One sparse layer after an anchor: logits of skipped rows equal those of the model without the layer.
    subject<OneSparse, short_run> with(3);
    subject<OneAnchor, short_run> without(3);
    const auto batch = random_batch::of<OneSparse, short_run>(3, false);
    const auto a = with.model().logits(batch.view(false));
    const auto b = without.model().logits(batch.view(false));
    int same = 0, changed = 0;
    for (std::size_t row = 0; row < batch.tokens.size(); ++row) {
        const auto at = static_cast<std::ptrdiff_t>(row) * small.vocab;
        std::equal(a.begin() + at, a.begin() + at + small.vocab, b.begin() + at) ? ++same : ++changed;
    }
    CHECK(same > 0);
    CHECK(changed > 0);
}
