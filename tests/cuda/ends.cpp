// SPDX-License-Identifier: MIT
// Embedding and output head on the GPU against the host oracle in fp64.
#include "numbers.hpp"
#include "operations.hpp"
#include "row_cases.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "support/catch.hpp"

namespace sdepth_test {

namespace {

using on_device::exact;

void check_embed(const row_case& c, int width, int vocab) {
    std::mt19937_64 random(test_seed());
    INFO("embed " << c.batch << " x " << c.capacity << ", width " << width << ", vocabulary " << vocab);
    sdepth::host<double> host(1);
    std::vector<int> tokens(c.numbers(1), -7);  // dead rows may hold anything
    for (int b = 0; b < c.batch; ++b)
        for (int i = 0; i < c.rows().each.of(b); ++i)  // half of the rows share few tokens
            tokens[count(1, b * c.capacity + i, 1)] =
                int(random() % unsigned(random() % 2 == 0 ? vocab : (vocab + 9) / 10));
    std::vector<double> table = normal(count(1, vocab, width), random), want(c.numbers(width), nan), got = want;
    const auto args = [&](std::vector<double>& x) -> sdepth::EmbedArgs<exact> {
        return {c.rows(), width, vocab, tokens.data(), table.data(), x.data()};
    };
    host.embed(args(want)), on_device::embed(args(got));
    CHECK(same_bits(got, want));

    const std::vector<double> grad_x = c.draw(width, random);
    std::vector<double> want_table = normal_fp32(table.size(), random), got_table = want_table, again = want_table;
    host.embed_backward({args(want), grad_x.data(), want_table.data()});
    on_device::embed_backward({args(got), grad_x.data(), got_table.data()});
    on_device::embed_backward({args(got), grad_x.data(), again.data()});
    check_rounded("grad_table", got_table, want_table, {.unit = 0x1p-24, .terms = double(c.batch * c.capacity)});
    CHECK(same_bits(got_table, again));
}

void check_head(const row_case& c, int width, int vocab, int chunk) {
    std::mt19937_64 random(test_seed());
    INFO("head " << c.batch << " x " << c.capacity << ", width " << width << ", vocabulary " << vocab << ", chunk "
                 << chunk);
    sdepth::host<double> host(1);
    std::vector<int> targets(c.numbers(1));
    int counted = 0;
    for (int& t : targets) t = random() % 5 == 0 ? -1 : int(random() % unsigned(vocab)), counted += t >= 0;
    const std::vector<double> y = c.draw(width, random);
    std::vector<double> weight = normal(count(1, vocab, width), random);
    for (double& w : weight) w = rounded(2 * w / std::sqrt(double(width)));  // logits of size 2
    std::vector<double> scratch(static_cast<std::size_t>(sdepth::logit_stride(vocab)) * std::size_t(chunk));

    struct outputs {
        double loss = .5;
        std::vector<double> grad_y, grad_weight;
    } want;
    want.grad_y.assign(y.size(), nan), want.grad_weight = normal_fp32(weight.size(), random);
    outputs got = want, again = want, alone = want;
    const auto args = [&](outputs& out, bool gradients) -> sdepth::HeadLossArgs<exact> {
        return {.rows = c.rows(),
                .width = width,
                .vocab = vocab,
                .scale = .25,
                .y = y.data(),
                .weight = weight.data(),
                .targets = targets.data(),
                .loss_sum = &out.loss,
                .grad_y = gradients ? out.grad_y.data() : nullptr,
                .grad_weight = gradients ? out.grad_weight.data() : nullptr,
                .logits = scratch.data(),
                .chunk = chunk};
    };
    host.head_loss(args(want, true));
    on_device::head_loss(args(got, true)), on_device::head_loss(args(again, true));
    on_device::head_loss(args(alone, false));
    // A logit up to 16 stored in bfloat16 errs by 2^-8 of itself, so does each softmax: four roundings lie between.
    // Dead rows of grad_y are not looked at: products write them.
    kill_dead(got.grad_y, c.rows(), width), kill_dead(again.grad_y, c.rows(), width);
    check_rounded("grad_y", got.grad_y, want.grad_y, {.unit = 0x1p-8, .own = 2, .mixed = 2, .terms = double(vocab)});
    check_rounded("grad_weight", got.grad_weight, want.grad_weight,
                  {.unit = 0x1p-8, .own = 1, .mixed = 2, .terms = double(c.batch * c.capacity)});
    CHECK(std::abs(got.loss - want.loss) <= 0x1p-8 * 8 * std::sqrt(counted + 1.) + 1e-6 * std::abs(want.loss));
    CHECK((got.loss == again.loss && got.loss == alone.loss));
    CHECK((same_bits(got.grad_y, again.grad_y) && same_bits(got.grad_weight, again.grad_weight)));
}

}  // namespace

TEST_CASE("embed equals the oracle", "[ends]") {
    for (const row_case& c : row_cases())
        for (const int width : {8, 1024, 300, 5}) check_embed(c, width, 777), check_embed(c, width, 3);
    check_embed({2, 2500, {2500, 2100}}, 256, 50257);
}
TEST_CASE("head_loss equals the oracle", "[ends]") {
    for (const row_case& c : row_cases())
        if (c.capacity < 1000) check_head(c, 64, 259, 32);
    check_head({1, 300, {}}, 256, 1001, 128);
    check_head({2, 70, {}}, 72, 8, 200);
    check_head({1, 40, {}}, 128, 50257, 16);
}
TEST_CASE("embed and head_loss on small shapes", "[ends][small]") {
    for (const row_case& c : small_row_cases()) check_embed(c, 24, 30), check_embed(c, 5, 30), check_head(c, 64, 91, 8);
}
TEST_CASE("a token or target outside the vocabulary shows as NaN", "[ends]") {
    std::vector<double> table(8, 1), x(16, 0), y(16, 1), loss(1);
    const std::vector<int> tokens{2, -1};
    on_device::embed({{1, {2}}, 8, 1, tokens.data(), table.data(), x.data()});
    for (const double e : x) CHECK(std::isnan(e));
    std::vector<double> scratch(64);
    on_device::head_loss({.rows = {1, {2}},
                          .width = 8,
                          .vocab = 1,
                          .y = y.data(),
                          .weight = table.data(),
                          .targets = tokens.data(),
                          .loss_sum = loss.data(),
                          .logits = scratch.data(),
                          .chunk = 1});
    CHECK(std::isnan(loss[0]));
}

}  // namespace sdepth_test
