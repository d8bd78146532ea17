// SPDX-License-Identifier: MIT
// The middle of feed-forward parts on the GPU against the host oracle in fp64.
#include "numbers.hpp"
#include "operations.hpp"
#include "row_cases.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "support/catch.hpp"

namespace sdepth_test {

namespace {

using on_device::exact;
using sdepth::activation;

// exp by the fast instruction: its argument is rounded, 2^-24 times 1.44 |x|, so a few more fp32 steps than are
// written.
constexpr roundings bound{.unit = 0x1p-8, .steps = 24};

void check_swiglu(const row_case& c, int hidden) {
    std::mt19937_64 random(test_seed());
    INFO("swiglu " << c.batch << " x " << c.capacity << ", hidden " << hidden);
    sdepth::host<double> host(1);
    std::vector<double> gate = c.draw(hidden, random), up = c.draw(hidden, random), grad = c.draw(hidden, random);
    for (double& g : gate) g *= 4;
    std::vector<double> want(gate.size(), nan), got = want;
    host.swiglu({c.rows(), hidden, gate.data(), up.data(), want.data()});
    on_device::swiglu({c.rows(), hidden, gate.data(), up.data(), got.data()});
    check_rounded("act", got, want, bound);

    std::vector<double> want_gate(gate.size(), nan), want_up = want_gate, got_gate = want_gate, got_up = grad;
    const sdepth::SwigluArgs<exact> args{c.rows(), hidden, gate.data(), up.data(), nullptr};
    host.swiglu_backward({args, grad.data(), want_gate.data(), want_up.data()});
    on_device::swiglu_backward({args, got_up.data(), got_gate.data(), got_up.data()});  // in place
    check_rounded("grad_gate", got_gate, want_gate, bound);
    check_rounded("grad_up", got_up, want_up, bound);
}

void check_activation(const row_case& c, int hidden, activation kind) {
    std::mt19937_64 random(test_seed());
    INFO("activation " << int(kind) << ", " << c.batch << " x " << c.capacity << ", hidden " << hidden);
    sdepth::host<double> host(1);
    std::vector<double> x = c.draw(hidden, random), grad = c.draw(hidden, random);
    for (double& e : x) e *= 2;
    std::vector<double> want(x.size(), nan), got = want, want_x = want, got_x = want;
    const sdepth::ActivationArgs<exact> args{c.rows(), hidden, kind, x.data(), want.data()};
    host.activation(args);
    on_device::activation({c.rows(), hidden, kind, x.data(), got.data()});
    check_rounded("act", got, want, bound);
    host.activation_backward({args, grad.data(), want_x.data()});
    on_device::activation_backward({{c.rows(), hidden, kind, x.data(), nullptr}, grad.data(), got_x.data()});
    check_rounded("grad_x", got_x, want_x, bound);
}

}  // namespace

TEST_CASE("swiglu equals the oracle", "[ffn]") {
    for (const row_case& c : row_cases())
        for (const int hidden : {8, 3072, 1000, 13}) check_swiglu(c, hidden);
}
TEST_CASE("activation equals the oracle", "[ffn]") {
    for (const row_case& c : row_cases())
        for (const int hidden : {8, 1024, 13})
            for (const auto kind : {activation::gelu, activation::relu, activation::silu})
                check_activation(c, hidden, kind);
}
TEST_CASE("swiglu and activation on small shapes", "[ffn][small]") {
    for (const row_case& c : small_row_cases())
        for (const int hidden : {24, 5}) {
            check_swiglu(c, hidden);
            for (const auto kind : {activation::gelu, activation::relu, activation::silu})
                check_activation(c, hidden, kind);
        }
}

}  // namespace sdepth_test
