// SPDX-License-Identifier: MIT
// The laws for sparse depth over the policies of its router and gate.
#include "laws/models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

TEST_CASE("sparse routing keeps the laws") { keep_the_laws(routing_models{}); }

TEST_CASE("sparse routing: steps repeat bit for bit") { steps_repeat<XMoD, short_run>(); }

TEST_CASE("sparse routing: evaluations leave the step alone") { evaluations_leave_the_step<XMoD, short_run>(); }

TEST_CASE("sparse routing: the bias enters as tau times the sum of increments, in training and evaluation") {
    subject<XMoD, short_run> plain(3);
    subject<Halved, short_run> halved(3);
    subject<Weighted, short_run> weighted(3);
    const auto batch = random_batch::of<XMoD, short_run>(3, true);
    CHECK(plain.loss(batch, true) == halved.loss(batch, true));
    CHECK(plain.choices() == halved.choices());
    weighted.loss(batch, true);
    CHECK(plain.choices() != weighted.choices());
    const auto logits = plain.model().logits(batch.view(false));  // without padding, whose logits nobody writes
    CHECK(logits == halved.model().logits(batch.view(false)));
    CHECK(logits != weighted.model().logits(batch.view(false)));
}
