// SPDX-License-Identifier: MIT
// An expert model made of a dense one starts as that model.
#include "sdepth/upcycle.hpp"

#include "laws/expert_models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

namespace {

constexpr Dims as_wide{.width = 12, .head_dim = 4, .heads = 4, .kv_heads = 2, .ffn = 20, .expert_ffn = 20, .vocab = 19};
constexpr auto shared_policy = moe_policy{.shared = 1};
constexpr auto sigmoid_policy =
    moe_policy{.score = expert_score::sigmoid, .order = score_order::score_then_choose, .steering = true};

template <class M>
void starts_as_dense() {
    subject<Qwen, short_run> dense(3);
    subject<M, short_run> experts(4);
    upcycle(dense.model(), experts.model(), 7);
    const auto batch = random_batch::of<Qwen, short_run>(5, false);
    const auto want = dense.model().logits(batch.view(false)), got = experts.model().logits(batch.view(false));
    double worst = 0;
    for (std::size_t i = 0; i < want.size(); ++i) worst = std::max(worst, std::abs(got[i] - want[i]));
    CHECK(worst <= 1e-13);
    bool routed = false;
    for_each_file_tensor<M>([&](const file_tensor& t) {
        if (t.row->tensor.use == role::expert_router) routed = routed || experts.weights()[t.offset] != 0;
    });
    CHECK(routed);
}

}  // namespace

TEST_CASE("upcycling: with renormalised weights the first forward is the dense model's") {
    starts_as_dense<Model<moe<5, 2> * 2_c, as_wide>>();
    starts_as_dense<Model<moe<5, 3, sigmoid_policy> * 2_c, as_wide>>();
    starts_as_dense<Model<dense + moe<4, 2>, as_wide>>();
}

TEST_CASE("upcycling: what has no source is refused") {
    subject<Qwen, short_run> dense(3);
    subject<Model<moe<5, 2, shared_policy> * 2_c, as_wide>, short_run> shared(4);
    subject<Model<moe<5, 2> * 2_c, with_experts>, short_run> narrow(4);
    const std::vector<double> before(narrow.weights(), narrow.weights() + 100);
    CHECK_THROWS_AS(upcycle(dense.model(), shared.model(), 7), error);
    CHECK_THROWS_AS(upcycle(dense.model(), narrow.model(), 7), error);
    CHECK(std::equal(before.begin(), before.end(), narrow.weights()));
}
