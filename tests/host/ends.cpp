// SPDX-License-Identifier: MIT
// Embedding and output head of the host backend.
#include <cmath>
#include <vector>

#include "support/catch.hpp"
#include "support/host_operations.hpp"
#include "support/samples.hpp"
#include "support/tolerance.hpp"

namespace {

using namespace sdepth_test;

const std::vector<int> live{4, 0, 3};
const std::vector<int> tokens{6, 2, 6, 0, -7, -7, -7, -7, 6, 1, 2, -7};
const std::vector<int> targets{1, -1, 6, 0, 99, 99, 99, 99, 3, 3, -5, 99};
const sdepth::batch_rows few{3, {4, live.data()}};

template <class T>
struct head_problem {
    using P = sdepth::uniform_precision<T>;
    sdepth::HeadLossArgs<P> args;
    std::vector<T> y, w, logits, grad_y, grad_w;
    double loss = .5;

    head_problem(sdepth::batch_rows rows, int width, int vocab, const std::vector<int>& wanted, int chunk) {
        y = samples<T>(rows.capacity() * width, 1), w = samples<T>(vocab * width, 2);
        for (T& e : w) e /= 2;
        grad_y = poison<T>(rows.capacity() * width), grad_w = samples<T>(vocab * width, 3);
        logits = poison<T>(chunk * sdepth::logit_stride(vocab));
        poison_dead(y, rows, width);
        args = {rows,          width, vocab,         .25,           y.data(),      w.data(),
                wanted.data(), &loss, grad_y.data(), grad_w.data(), logits.data(), chunk};
    }
};

}  // namespace

TEST_CASE("embed copies rows and its gradient adds them up in order", "[ends]") {
    using P = sdepth::uniform_precision<double>;
    sdepth::host<double> host(3);
    const std::vector<double> table = samples<double>(7 * 130, 1);
    std::vector<double> x = poison<double>(12 * 130), grad_x = samples<double>(12 * 130, 2);
    poison_dead(grad_x, few, 130);
    const sdepth::EmbedArgs<P> args{few, 130, 7, tokens.data(), table.data(), x.data()};
    host.embed(args);
    CHECK(dead_alone_are_nan(x, few, 130));
    CHECK((x[0] == table[6 * 130] && x[129] == table[6 * 130 + 129] && x[130] == table[2 * 130]));

    const std::vector<double> before = samples<double>(7 * 130, 3);
    std::vector<double> grad = before, want = before;
    host.embed_backward({args, grad_x.data(), grad.data()});
    for (const std::size_t i : {0u, 1u, 2u, 3u, 8u, 9u, 10u})
        for (std::size_t c = 0; c < 130; ++c)
            want[static_cast<std::size_t>(tokens[i]) * 130 + c] += grad_x[i * 130 + c];
    CHECK(grad == want);

    sdepth::EmbedArgs<P> small = args;
    small.vocab = 6;
    CHECK_THROWS_AS(host.embed(small), sdepth::error);
}

TEST_CASE("head_loss: value, slopes, rows without a target, any chunk", "[ends]") {
    sdepth::host<double> host(2);
    std::vector<double> first_grad;
    for (const int chunk : {1, 3, 100}) {
        head_problem<double> p(few, 5, 7, targets, chunk);
        std::vector<double> grad_w = p.grad_w;
        host.head_loss(p.args);
        double want = .5;
        for (const std::size_t i : {0u, 2u, 3u, 8u, 9u}) {
            double sum = 0, at_target = 0;
            for (std::size_t v = 0; v < 7; ++v) {
                double logit = 0;
                for (std::size_t c = 0; c < 5; ++c) logit += p.y[i * 5 + c] * p.w[v * 5 + c];
                sum += std::exp(logit);
                if (static_cast<int>(v) == targets[i]) at_target = logit;
            }
            want += std::log(sum) - at_target;
        }
        CHECK(p.loss == Approx(want).epsilon(1e-13));
        CHECK(dead_alone_are_nan(p.grad_y, few, 5));
        for (const std::size_t i : {1u, 10u})
            for (std::size_t c = 0; c < 5; ++c) CHECK(p.grad_y[i * 5 + c] == 0);
        if (first_grad.empty()) first_grad = p.grad_y;
        CHECK(distance(p.grad_y, first_grad) <= tolerance<double>(7, 8));

        for (std::size_t i = 0; i < grad_w.size(); ++i) grad_w[i] = p.grad_w[i] - grad_w[i];
        sdepth::HeadLossArgs<sdepth::uniform_precision<double>> value = p.args;
        double sum = 0;
        value.loss_sum = &sum, value.grad_y = nullptr, value.grad_weight = nullptr;
        const auto loss = [&] {
            sum = 0;
            host.head_loss(value);
            return .25 * sum;
        };
        CHECK(gradient_defect(loss, p.y, p.grad_y) <= 1e-6);
        CHECK(gradient_defect(loss, p.w, grad_w) <= 1e-6);
    }
}

TEST_CASE("head_loss: large logits, wrong targets, no scratch", "[ends]") {
    sdepth::host<float> host(1);
    std::vector<int> wanted{1};
    head_problem<float> p({1, {1, nullptr}}, 1, 2, wanted, 1);
    p.y = {100}, p.w = {10, -10}, p.loss = 0;
    p.args.y = p.y.data(), p.args.weight = p.w.data();
    host.head_loss(p.args);
    CHECK(p.loss == 2000);
    wanted[0] = 2;
    CHECK_THROWS_AS(host.head_loss(p.args), sdepth::error);
    wanted[0] = 0, p.args.chunk = 0;
    CHECK_THROWS_AS(host.head_loss(p.args), sdepth::error);
}

TEST_CASE("ends: float agrees with double and with itself", "[ends]") {
    const int n = 300, width = 64, vocab = 257;
    std::vector<int> wanted;
    for (int i = 0; i < n; ++i) wanted.push_back(i % 5 == 0 ? -1 : i * 7 % vocab);
    const sdepth::batch_rows rows{1, {n, nullptr}};
    sdepth::host<double> oracle(1);
    sdepth::host<float> one(1), three(3);
    head_problem<double> want(rows, width, vocab, wanted, 128);
    head_problem<float> got(rows, width, vocab, wanted, 128), again(rows, width, vocab, wanted, 128);
    oracle.head_loss(want.args), one.head_loss(got.args), three.head_loss(again.args);
    // A logit of size 4 errs by tolerance(width) of itself, its exponential by four times that, relatively.
    const double logit = 4 * tolerance<float>(width, 1);
    CHECK(std::abs(got.loss / want.loss - 1) <= logit);
    CHECK(distance(got.grad_y, want.grad_y) <= 4 * logit + tolerance<float>(vocab, 4));
    CHECK(distance(got.grad_w, want.grad_w) <= 4 * logit + tolerance<float>(n, 4));
    CHECK((got.loss == again.loss && same_bits(got.grad_y, again.grad_y) && same_bits(got.grad_w, again.grad_w)));
}
