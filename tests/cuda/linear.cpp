// SPDX-License-Identifier: MIT
// Products with a weight matrix on the GPU against the host oracle in fp64.
#include "numbers.hpp"
#include "operations.hpp"
#include "row_cases.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "support/catch.hpp"

namespace sdepth_test {

namespace {

using on_device::exact;

struct linear_problem {
    row_case of;
    int inputs, outputs;
    bool adds;
    std::vector<double> x, weight, bias, y, grad_y, grad_x, grad_weight, grad_bias;

    linear_problem(const row_case& c, int in, int out, bool a, std::mt19937_64& random)
        : of(c), inputs(in), outputs(out), adds(a) {
        x = c.draw(in, random), grad_y = c.draw(out, random);
        weight = normal(count(1, out, in), random), bias = normal_fp32(count(1, 1, out), random);
        y.assign(c.numbers(out), nan);
        grad_x = adds ? c.draw(in, random) : std::vector<double>(x.size(), nan);
        grad_weight = adds ? normal_fp32(weight.size(), random) : std::vector<double>(weight.size(), nan);
        grad_bias = normal_fp32(bias.size(), random);
    }
    sdepth::LinearArgs<exact> args() {
        return {of.rows(), inputs, outputs, x.data(), weight.data(), bias.data(), y.data()};
    }
    sdepth::LinearBackwardArgs<exact> back() {
        return {args(), grad_y.data(), grad_x.data(), adds, grad_weight.data(), adds, grad_bias.data()};
    }
};

// Products write dead rows too, which nobody reads.
void forget_dead(std::vector<double>& got, const row_case& c, int width) { kill_dead(got, c.rows(), width); }

void check_linear(const row_case& c, int inputs, int outputs, bool adds, bool workspace) {
    std::mt19937_64 random(test_seed());
    INFO("linear " << c.batch << " x " << c.capacity << ", " << inputs << " to " << outputs << ", adds " << adds
                   << ", workspace " << workspace);
    sdepth::host<double> host(1);
    linear_problem want(c, inputs, outputs, adds, random), got = want, again = want;
    host.linear(want.args());
    on_device::linear(got.args(), workspace), on_device::linear(again.args(), workspace);
    forget_dead(got.y, c, outputs), forget_dead(again.y, c, outputs);
    // Rounded after the product and after the bias.
    check_rounded("y", got.y, want.y, {.unit = 0x1p-8, .mixed = 1, .terms = double(inputs)});
    CHECK(same_bits(got.y, again.y));

    host.linear_backward(want.back());
    on_device::linear_backward(got.back(), workspace), on_device::linear_backward(again.back(), workspace);
    forget_dead(got.grad_x, c, inputs), forget_dead(again.grad_x, c, inputs);
    // cuBLASLt rounds a product before it adds what was there.
    check_rounded("grad_x", got.grad_x, want.grad_x,
                  {.unit = 0x1p-8, .mixed = adds ? 1. : 0., .terms = double(outputs)});
    const double rows = double(c.batch) * c.capacity;
    check_rounded("grad_weight", got.grad_weight, want.grad_weight, {.unit = 0x1p-24, .terms = rows});
    check_rounded("grad_bias", got.grad_bias, want.grad_bias, {.unit = 0x1p-24, .terms = rows});
    CHECK((same_bits(got.grad_x, again.grad_x) && same_bits(got.grad_weight, again.grad_weight) &&
           same_bits(got.grad_bias, again.grad_bias)));
}

}  // namespace

TEST_CASE("linear equals the oracle, with a workspace and without", "[linear]") {
    for (const row_case& c : row_cases())
        for (const auto& [inputs, outputs] : {std::pair{128, 320}, {320, 128}, {256, 256}, {24, 1040}})
            for (const bool adds : {false, true}) check_linear(c, inputs, outputs, adds, true);
    for (const bool adds : {false, true}) check_linear({1, 1024, {}}, 1024, 1024, adds, false);
}
TEST_CASE("linear on small shapes", "[linear][small]") {
    for (const row_case& c : small_row_cases())
        for (const bool adds : {false, true}) check_linear(c, 24, 40, adds, true);
}

}  // namespace sdepth_test
