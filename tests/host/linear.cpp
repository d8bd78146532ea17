// SPDX-License-Identifier: MIT
// Linear maps of the host backend: slopes, dead rows, float against double, threads.
#include <vector>

#include "support/catch.hpp"
#include "support/host_operations.hpp"
#include "support/samples.hpp"
#include "support/tolerance.hpp"

namespace {

using namespace sdepth_test;

template <class T>
struct problem {
    using P = sdepth::uniform_precision<T>;
    sdepth::LinearArgs<P> args;
    sdepth::LinearBackwardArgs<P> back;
    std::vector<T> x, w, bias, y, grad_y, grad_x, grad_w, grad_bias;

    problem(sdepth::batch_rows rows, int inputs, int outputs, bool has_bias, bool adds) {
        const long long n = rows.capacity();
        x = samples<T>(n * inputs, 1), w = samples<T>(outputs * inputs, 2), bias = samples<T>(outputs, 3);
        grad_y = samples<T>(n * outputs, 4);
        poison_dead(x, rows, inputs), poison_dead(grad_y, rows, outputs);
        y = poison<T>(n * outputs);
        grad_x = adds ? samples<T>(n * inputs, 5) : poison<T>(n * inputs);
        poison_dead(grad_x, rows, inputs);
        grad_w = adds ? samples<T>(outputs * inputs, 6) : poison<T>(outputs * inputs),
        grad_bias = samples<T>(outputs, 7);
        args = {rows, inputs, outputs, x.data(), w.data(), has_bias ? bias.data() : nullptr, y.data()};
        back = {.forward = args,
                .grad_y = grad_y.data(),
                .grad_x = grad_x.data(),
                .adds_to_grad_x = adds,
                .grad_weight = grad_w.data(),
                .adds_to_grad_weight = adds,
                .grad_bias = has_bias ? grad_bias.data() : nullptr};
    }
    void run(sdepth::host<T>& host) {
        host.linear(args);
        host.linear_backward(back);
    }
};

std::vector<double> minus(std::vector<double> a, const std::vector<double>& b) {
    for (std::size_t i = 0; i < a.size(); ++i) a[i] -= b[i];
    return a;
}

}  // namespace

TEST_CASE("linear: gradients are slopes, added to what is there or written over it", "[linear]") {
    const std::vector<int> live{4, 0, 3};
    sdepth::host<double> host(2);
    for (const int* counts : {static_cast<const int*>(nullptr), live.data()})
        for (const bool has_bias : {false, true})
            for (const bool adds : {false, true}) {
                const sdepth::batch_rows rows{3, {4, counts}};
                problem<double> p(rows, 5, 7, has_bias, adds);
                const std::vector<double> w0 = p.grad_w, b0 = p.grad_bias, x0 = p.grad_x;
                p.run(host);
                CHECK(dead_alone_are_nan(p.y, rows, 7));
                CHECK(dead_alone_are_nan(p.grad_x, rows, 5));
                const auto loss = [&] {
                    host.linear(p.args);
                    return inner(p.y, p.grad_y);
                };
                CHECK(gradient_defect(loss, p.x, adds ? minus(p.grad_x, x0) : p.grad_x) <= 1e-6);
                CHECK(gradient_defect(loss, p.w, adds ? minus(p.grad_w, w0) : p.grad_w) <= 1e-6);
                if (has_bias)
                    CHECK(gradient_defect(loss, p.bias, minus(p.grad_bias, b0)) <= 1e-6);
                else
                    CHECK(p.grad_bias == b0);
            }
}

TEST_CASE("linear: no gradient of x where nobody asks, and no rows at all", "[linear]") {
    sdepth::host<double> host(1);
    problem<double> p({1, {4, nullptr}}, 3, 2, false, false);
    p.back.grad_x = nullptr;
    p.run(host);
    problem<double> whole({1, {4, nullptr}}, 3, 2, false, false);
    whole.run(host);
    CHECK(p.grad_w == whole.grad_w);

    const int none = 0;
    problem<double> empty({1, {4, &none}}, 3, 2, true, true);
    const std::vector<double> before = empty.grad_w;
    empty.run(host);
    CHECK(empty.grad_w == before);
    problem<double> over({1, {4, &none}}, 3, 2, true, false);
    over.run(host);
    CHECK(over.grad_w == std::vector<double>(over.grad_w.size(), 0.0));
    CHECK(dead_alone_are_nan(empty.y, empty.args.rows, 2));
}

TEST_CASE("linear: float agrees with double and with itself", "[linear]") {
    const std::vector<int> live{100, 0, 37};
    sdepth::host<double> oracle(1);
    sdepth::host<float> one(1), three(3);
    for (const int* counts : {static_cast<const int*>(nullptr), live.data()}) {
        const sdepth::batch_rows rows{3, {100, counts}};
        problem<double> want(rows, 70, 45, true, true);
        problem<float> got(rows, 70, 45, true, true), again(rows, 70, 45, true, true);
        want.run(oracle), got.run(one), again.run(three);
        CHECK(distance(got.y, want.y) <= tolerance<float>(70, 1));
        CHECK(distance(got.grad_x, want.grad_x) <= tolerance<float>(45, 1));
        CHECK(distance(got.grad_w, want.grad_w) <= tolerance<float>(300, 1));
        CHECK(distance(got.grad_bias, want.grad_bias) <= tolerance<float>(300, 1));
        CHECK((same_bits(got.y, again.y) && same_bits(got.grad_x, again.grad_x)));
        CHECK((same_bits(got.grad_w, again.grad_w) && same_bits(got.grad_bias, again.grad_bias)));
    }
}
