// SPDX-License-Identifier: MIT
// Non-linear parts of the host backend, and its exponential.
#include <cmath>
#include <vector>

#include "support/catch.hpp"
#include "support/host_operations.hpp"
#include "support/samples.hpp"
#include "support/tolerance.hpp"

namespace {

using namespace sdepth_test;
using sdepth::activation;

template <class T>
struct gated_problem {
    using P = sdepth::uniform_precision<T>;
    sdepth::SwigluArgs<P> args;
    sdepth::SwigluBackwardArgs<P> back;
    std::vector<T> gate, up, act, grad_act, grad_gate, grad_up;

    gated_problem(sdepth::batch_rows rows, int hidden) {
        const long long n = rows.capacity() * hidden;
        gate = samples<T>(n, 1), up = samples<T>(n, 2), grad_act = samples<T>(n, 3);
        act = grad_gate = grad_up = poison<T>(n);
        poison_dead(gate, rows, hidden), poison_dead(up, rows, hidden), poison_dead(grad_act, rows, hidden);
        args = {rows, hidden, gate.data(), up.data(), act.data()};
        back = {args, grad_act.data(), grad_gate.data(), grad_up.data()};
    }
    void run(sdepth::host<T>& host) {
        host.swiglu(args);
        host.swiglu_backward(back);
    }
};

template <class T>
struct plain_problem {
    using P = sdepth::uniform_precision<T>;
    sdepth::ActivationArgs<P> args;
    sdepth::ActivationBackwardArgs<P> back;
    std::vector<T> x, act, grad_act, grad_x;

    plain_problem(sdepth::batch_rows rows, int hidden, activation kind) {
        const long long n = rows.capacity() * hidden;
        x = samples<T>(n, 1), grad_act = samples<T>(n, 2);
        for (T& e : x)
            if (std::abs(e) < T{.05f}) e = T{.05f};  // away from the corner of relu
        act = grad_x = poison<T>(n);
        poison_dead(x, rows, hidden), poison_dead(grad_act, rows, hidden);
        args = {rows, hidden, kind, x.data(), act.data()};
        back = {args, grad_act.data(), grad_x.data()};
    }
    void run(sdepth::host<T>& host) {
        host.activation(args);
        host.activation_backward(back);
    }
};

const std::vector<int> live{3, 0, 1};
const sdepth::batch_rows few{3, {3, live.data()}};

}  // namespace

TEST_CASE("swiglu: slopes, dead rows, in place", "[ffn]") {
    sdepth::host<double> host(2);
    gated_problem<double> p(few, 21);
    p.run(host);
    CHECK((dead_alone_are_nan(p.act, few, 21) && dead_alone_are_nan(p.grad_gate, few, 21)));
    const auto loss = [&] {
        host.swiglu(p.args);
        return inner(p.act, p.grad_act);
    };
    CHECK(gradient_defect(loss, p.gate, p.grad_gate) <= 1e-6);
    CHECK(gradient_defect(loss, p.up, p.grad_up) <= 1e-6);
    gated_problem<double> in_place(few, 21);
    in_place.back.grad_up = in_place.grad_act.data();
    host.swiglu_backward(in_place.back);
    CHECK((same_bits(in_place.grad_act, p.grad_up) && same_bits(in_place.grad_gate, p.grad_gate)));
}

TEST_CASE("activation: values, slopes, dead rows, in place", "[ffn]") {
    sdepth::host<double> host(2);
    for (const activation kind : {activation::gelu, activation::relu, activation::silu}) {
        plain_problem<double> p(few, 21, kind);
        p.run(host);
        CHECK((dead_alone_are_nan(p.act, few, 21) && dead_alone_are_nan(p.grad_x, few, 21)));
        const double x = p.x[5];
        CHECK(p.act[5] == Approx(kind == activation::gelu   ? x / 2 * (1 + std::erf(x / std::sqrt(2)))
                                 : kind == activation::relu ? std::max(x, 0.)
                                                            : x / (1 + std::exp(-x)))
                              .epsilon(1e-14));
        const auto loss = [&] {
            host.activation(p.args);
            return inner(p.act, p.grad_act);
        };
        CHECK(gradient_defect(loss, p.x, p.grad_x) <= 1e-6);
        plain_problem<double> in_place(few, 21, kind);
        in_place.back.grad_x = in_place.grad_act.data();
        host.activation_backward(in_place.back);
        CHECK(same_bits(in_place.grad_act, p.grad_x));
    }
}

TEST_CASE("feed-forward parts: float agrees with double and with itself", "[ffn]") {
    const std::vector<int> many{90, 0, 33};
    const sdepth::batch_rows rows{3, {90, many.data()}};
    sdepth::host<double> oracle(1);
    sdepth::host<float> one(1), three(3);
    gated_problem<double> want(rows, 50);
    gated_problem<float> got(rows, 50), again(rows, 50);
    want.run(oracle), got.run(one), again.run(three);
    // sigmoid: exponential 2 units, sum, quotient; then two products. Products of three normal numbers reach some
    // thirty times their root mean square, hence eight times the roundings.
    CHECK(distance(got.act, want.act) <= tolerance<float>(1, 8 * 6));
    CHECK(distance(got.grad_gate, want.grad_gate) <= tolerance<float>(1, 8 * 10));
    CHECK(distance(got.grad_up, want.grad_up) <= tolerance<float>(1, 8 * 6));
    CHECK((same_bits(got.act, again.act) && same_bits(got.grad_gate, again.grad_gate)));
    for (const activation kind : {activation::gelu, activation::relu, activation::silu}) {
        plain_problem<double> exact(rows, 50, kind);
        plain_problem<float> rounded(rows, 50, kind), repeated(rows, 50, kind);
        exact.run(oracle), rounded.run(one), repeated.run(three);
        CHECK(distance(rounded.act, exact.act) <= tolerance<float>(1, 6));
        CHECK(distance(rounded.grad_x, exact.grad_x) <= tolerance<float>(1, 8));
        CHECK((same_bits(rounded.act, repeated.act) && same_bits(rounded.grad_x, repeated.grad_x)));
    }
}

TEST_CASE("exponential of float", "[ffn]") {
    using sdepth::on_host::detail::exponential;
    double worst = 0;
    for (float x = -86.9f; x < 88; x += .00137f) {
        const double want = std::exp(static_cast<double>(x));
        worst = std::max(worst, std::abs(static_cast<double>(exponential(x)) / want - 1));
    }
    CHECK(worst <= 2 * 0x1p-23);
    CHECK(exponential(0.f) == 1);
    CHECK(exponential(-87.5f) == 0);
    CHECK(exponential(-std::numeric_limits<float>::infinity()) == 0);
    CHECK(exponential(88.5f) == std::numeric_limits<float>::infinity());
    CHECK(exponential(std::numeric_limits<float>::infinity()) == std::numeric_limits<float>::infinity());
    CHECK(std::isnan(exponential(-std::numeric_limits<float>::quiet_NaN())));
    CHECK(std::isnan(exponential(std::numeric_limits<float>::quiet_NaN())));
}
