// SPDX-License-Identifier: MIT
// Routing around the selection, and what decoding adds, on the GPU against the host oracle in fp64.
#include <algorithm>
#include <cmath>

#include "numbers.hpp"
#include "operations.hpp"
#include "row_cases.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "support/catch.hpp"

namespace sdepth_test {

namespace {

using on_device::exact;
using sdepth::gate_form;

void check_logits(const row_case& c, int width) {
    std::mt19937_64 random(test_seed());
    INFO("route_logits " << c.batch << " x " << c.capacity << ", width " << width);
    sdepth::host<double> host(1);
    const std::vector<double> x = c.draw(width, random), weight = normal_fp32(count(1, 1, width), random);
    std::vector<double> want(c.numbers(1), nan), got = want;
    const auto args = [&](std::vector<double>& logits) -> sdepth::RouteLogitsArgs<exact> {
        return {c.rows(), width, x.data(), weight.data(), logits.data()};
    };
    host.route_logits(args(want)), on_device::route_logits(args(got));
    check_rounded("logits", got, want, {.unit = 0x1p-24, .terms = double(width)});

    std::vector<double> grad = normal_fp32(c.numbers(1), random), grad_of_x = normal_fp32(c.numbers(1), random);
    kill_dead(grad, c.rows(), 1), kill_dead(grad_of_x, c.rows(), 1);
    for (const bool with_x : {false, true}) {
        struct outputs {
            std::vector<double> weight, x;
        } expected{normal_fp32(weight.size(), random), c.draw(width, random)};
        outputs found = expected, again = expected;
        const auto back = [&](outputs& o) -> sdepth::RouteLogitsBackwardArgs<exact> {
            return {args(got), grad.data(), grad_of_x.data(), o.weight.data(), with_x ? o.x.data() : nullptr};
        };
        host.route_logits_backward(back(expected));
        on_device::route_logits_backward(back(found)), on_device::route_logits_backward(back(again));
        check_rounded("grad_weight", found.weight, expected.weight,
                      {.unit = 0x1p-24, .terms = double(c.batch * c.capacity)});
        check_rounded("grad_x", found.x, expected.x, in_bf16);
        CHECK((same_bits(found.weight, again.weight) && same_bits(found.x, again.x)));
    }
}

struct residual_problem {
    row_case of;
    int width, sequence;
    gate_form gate;
    bool with_a, with_f, with_scale;
    std::vector<int> ids;
    std::vector<double> logits, scale, a, f, x, bias, before, grad_x, grad_a, grad_f, grad_logits, grad_scale;

    residual_problem(const row_case& c, int w, gate_form g, int parts, std::mt19937_64& random)
        : of(c),
          width(w),
          sequence(2 * c.capacity + 1),
          gate(g),
          with_a(parts % 2 == 1),
          with_f(parts >= 2),
          with_scale(g != gate_form::ffn && parts != 1) {
        for (std::size_t i = 0; i < of.numbers(1); ++i)
            ids.push_back(2 * int(i % std::size_t(c.capacity)) + int(random() % 2));
        const std::size_t all = count(c.batch, sequence, 1);
        logits = normal_fp32(all, random), scale = {.75}, bias = normal_fp32(all, random);
        x = normal(all * std::size_t(w), random), grad_x = normal(all * std::size_t(w), random);
        a = of.draw(w, random), f = of.draw(w, random), before = of.draw(w, random);
        grad_a = grad_f = std::vector<double>(a.size(), nan);
        grad_logits = normal_fp32(all, random), grad_scale = normal_fp32(1, random);
    }
    sdepth::ScatterResidualArgs<exact> args() {
        return {.rows = of.rows(),
                .sequence = sequence,
                .width = width,
                .gate = gate,
                .increment = .5,
                .ids = ids.data(),
                .gate_logits = logits.data(),
                .scale = with_scale ? scale.data() : nullptr,
                .a = with_a ? a.data() : nullptr,
                .f = with_f ? f.data() : nullptr,
                .x = x.data(),
                .bias = bias.data()};
    }
    sdepth::ScatterResidualBackwardArgs<exact> back() {
        return {args(),
                before.data(),
                grad_x.data(),
                grad_a.data(),
                grad_f.data(),
                grad_logits.data(),
                with_scale ? grad_scale.data() : nullptr};
    }
    // grad_scale += sum over rows of r (<grad_x, a> + <grad_x, f>). Its terms may cancel, and rounding goes by them,
    // not by the sum: this is its size where they do not. Rows are summed in double, so that the errors of rows add up
    // as their squares, like the rows themselves, and the longest fp32 sum is the one over a row. Ten further
    // roundings: the exponential (its argument in units of log 2 and 2 ulp), 1 +, the quotient, <a> + <f>, times r, to
    // fp32 for the sum's store, plus what was there, and that store.
    double scale_slack() const { return tolerance<float>(width, 10) * scale_size(); }
    double scale_size() const {
        double squares = grad_scale[0] * grad_scale[0];
        for (int b = 0; b < of.batch; ++b)
            for (int i = 0; i < of.rows().each.of(b); ++i) {
                const std::size_t row = count(b, of.capacity, 1) + std::size_t(i),
                                  at = count(b, sequence, 1) + std::size_t(ids[row]);
                const double r = gate == gate_form::none ? 1 : 1 / (1 + std::exp(-logits[at]));
                for (std::size_t c = 0; c < std::size_t(width); ++c) {
                    const double g = r * grad_x[at * std::size_t(width) + c];
                    if (with_a) squares += std::pow(g * a[row * std::size_t(width) + c], 2);
                    if (with_f) squares += std::pow(g * f[row * std::size_t(width) + c], 2);
                }
            }
        return std::sqrt(squares);
    }
};

void check_residual(const row_case& c, int width, gate_form gate, int parts) {
    std::mt19937_64 random(test_seed());
    INFO("residual " << c.batch << " x " << c.capacity << ", width " << width << ", gate " << int(gate) << ", parts "
                     << parts);
    sdepth::host<double> host(1);
    residual_problem want(c, width, gate, parts, random), got = want;
    const double scale_slack = want.scale_slack();  // before what was there is gone
    host.scatter_residual_backward(want.back()), on_device::scatter_residual_backward(got.back());
    CHECK(same_bits(got.x, want.x));  // set back
    auto again = got;
    check_rounded("grad_a", got.grad_a, want.grad_a, in_bf16);
    check_rounded("grad_f", got.grad_f, want.grad_f, in_bf16);
    check_rounded("grad_logits", got.grad_logits, want.grad_logits, {.unit = 0x1p-24, .terms = 4. * width});
    CHECK(std::abs(got.grad_scale[0] - want.grad_scale[0]) <= scale_slack);
    host.scatter_residual(want.args()), on_device::scatter_residual(got.args());
    on_device::scatter_residual(again.args());
    check_rounded("x", got.x, want.x, in_bf16);
    check_rounded("bias", got.bias, want.bias, in_fp32);
    CHECK(same_bits(got.x, again.x));
}

void check_loss(const row_case& c) {
    std::mt19937_64 random(test_seed());
    INFO("route_loss " << c.batch << " x " << c.capacity);
    sdepth::host<double> host(1);
    std::vector<double> logits = normal_fp32(c.numbers(1), random);
    for (double& x : logits) x *= 4;
    kill_dead(logits, c.rows(), 1);
    const int most = (c.capacity + 2) / 3;
    std::vector<int> ids(count(c.batch, most, 1), -1), live;
    for (int b = 0; b < c.batch; ++b) {
        int chosen = 0;
        for (int i = 0; i < c.rows().each.of(b) && chosen < most; ++i)
            if (random() % 4 == 0) ids[count(1, b * most + chosen++, 1)] = i;
        live.push_back(chosen);
    }
    struct outputs {
        double loss = 2;
        std::vector<double> grad;
    } want{2, std::vector<double>(logits.size(), nan)};
    outputs got = want, alone = want;
    const auto args = [&](outputs& o, bool gradient) -> sdepth::RouteLossArgs<exact> {
        return {.rows = c.rows(),
                .chosen = {c.batch, {most, live.data()}},
                .scale = .125,
                .logits = logits.data(),
                .ids = ids.data(),
                .loss_sum = &o.loss,
                .grad_logits = gradient ? o.grad.data() : nullptr};
    };
    host.route_loss(args(want, true));
    on_device::route_loss(args(got, true)), on_device::route_loss(args(alone, false));
    check_rounded("grad_logits", got.grad, want.grad, {.unit = 0x1p-24, .own = 2, .steps = 16});
    CHECK(std::abs(got.loss - want.loss) <= 16 * 0x1p-24 * std::abs(want.loss));
    CHECK(got.loss == alone.loss);
}

void check_visibility(const row_case& c, int window, bool full_keys, bool documents) {
    std::mt19937_64 random(test_seed());
    INFO("visibility " << c.batch << " x " << c.capacity << ", window " << window << ", full " << full_keys
                       << ", documents " << documents);
    sdepth::host<double> host(1);
    const int length = 3 * c.capacity + 2;
    std::vector<int> ids, of_row, want_first(c.numbers(1), -9), want_last = want_first;
    for (int b = 0; b < c.batch; ++b)
        for (int i = 0; i < c.capacity; ++i) ids.push_back(3 * i + int(random() % 3));
    for (int b = 0, document = 0; b < c.batch; ++b)
        for (int i = 0; i < length; ++i) of_row.push_back(document += random() % 9 == 0);
    std::vector<int> got_first = want_first, got_last = want_first;
    const auto args = [&](std::vector<int>& first, std::vector<int>& last) -> sdepth::VisibilityArgs {
        return {.queries = c.rows(),
                .keys = full_keys ? sdepth::batch_rows{c.batch, {length}} : c.rows(),
                .full_keys = full_keys,
                .window = window,
                .ids = ids.data(),
                .documents = documents ? of_row.data() : nullptr,
                .sequence = length,
                .first = first.data(),
                .last = last.data()};
    };
    host.visibility(args(want_first, want_last)), on_device::visibility(args(got_first, got_last));
    CHECK((got_first == want_first && got_last == want_last));

    std::vector<int> keys;
    for (int b = 0; b < c.batch; ++b)
        for (int i = 0; i < 2 * c.capacity; ++i) keys.push_back(2 * i + int(random() % 2));
    auto host_args = args(want_first, want_last), device_args = args(got_first, got_last);
    for (auto* a : {&host_args, &device_args}) {
        a->documents = nullptr, a->keys = {c.batch, {2 * c.capacity}}, a->key_positions = keys.data();
    }
    host.visibility(host_args), on_device::visibility(device_args);
    CHECK((got_first == want_first && got_last == want_last));
}

void check_decode(const row_case& c, int width) {
    std::mt19937_64 random(test_seed());
    INFO("decode " << c.batch << " x " << c.capacity << ", width " << width);
    sdepth::host<double> host(1);
    std::vector<int> ids, start, where(c.numbers(1), -9);
    for (std::size_t i = 0; i < c.numbers(1); ++i) ids.push_back(int(random() % 1000));
    for (int b = 0; b < c.batch; ++b) start.push_back(int(random() % 100));
    auto found = where;
    host.positions({c.rows(), ids.data(), start.data(), where.data()});
    on_device::positions({c.rows(), ids.data(), start.data(), found.data()});
    CHECK(found == where);

    struct held {
        std::vector<double> k, v;
        std::vector<int> positions, count;
    } want;
    const int capacity = c.capacity + 5;
    want.k.assign(count(c.batch, capacity, width), nan), want.v = want.k;
    want.positions.assign(count(c.batch, capacity, 1), -9);
    for (int b = 0; b < c.batch; ++b) want.count.push_back(int(random() % 6));
    held got = want;
    const std::vector<double> k = c.draw(width, random), v = c.draw(width, random);
    const auto args = [&](held& h) -> sdepth::CacheArgs<exact> {
        return {c.rows(),     width,      capacity,   k.data(),           v.data(),
                where.data(), h.k.data(), h.v.data(), h.positions.data(), h.count.data()};
    };
    host.cache(args(want)), on_device::cache(args(got));
    CHECK((same_bits(got.k, want.k) && same_bits(got.v, want.v)));
    CHECK((got.positions == want.positions && got.count == want.count));
}

}  // namespace

TEST_CASE("route_logits equals the oracle", "[route]") {
    for (const row_case& c : row_cases())
        for (const int width : {8, 1024, 1537, 2048, 7}) check_logits(c, width);
}
TEST_CASE("scatter_residual equals the oracle", "[route]") {
    for (const row_case& c : row_cases())
        for (const int width : {8, 1024, 1029})
            for (const gate_form gate : {gate_form::layer, gate_form::ffn, gate_form::none})
                for (const int parts : {1, 2, 3}) check_residual(c, width, gate, parts);
}
TEST_CASE("route_loss equals the oracle", "[route]") {
    for (const row_case& c : row_cases()) check_loss(c);
    check_loss({1, 32768, {}});
}
TEST_CASE("visibility equals the oracle", "[route]") {
    for (const row_case& c : row_cases())
        for (const int window : {0, 1, 20})
            for (const bool full : {false, true})
                for (const bool documents : {false, true}) check_visibility(c, window, full, documents);
}
TEST_CASE("positions and cache equal the oracle", "[route]") {
    for (const row_case& c : row_cases())
        for (const int width : {8, 1024, 9}) check_decode(c, width);
}
TEST_CASE("track_cut equals the oracle", "[route]") {
    sdepth::host<double> host(1);
    const std::vector<double> sums{3, 5, -7};
    const std::vector<long long> groups{2, 0, 4};
    std::vector<double> want(21, .5);
    auto got = want;
    const int broken = 0, fine = 1;
    for (const int* finite : {&broken, &fine, static_cast<const int*>(nullptr)}) {
        host.track_cut({3, 10, .02, sums.data(), groups.data(), want.data(), finite});
        on_device::track_cut({3, 10, .02, sums.data(), groups.data(), got.data(), finite});
        check_rounded("cut", got, want, in_fp32);
    }
}
TEST_CASE("routing on small shapes", "[route][small]") {
    for (const row_case& c : small_row_cases()) {
        check_logits(c, 24), check_logits(c, 5);
        for (const int parts : {1, 2, 3})
            check_residual(c, 24, gate_form::layer, parts), check_residual(c, 5, gate_form::ffn, parts);
        check_loss(c), check_visibility(c, 4, false, true), check_visibility(c, 0, true, true), check_decode(c, 24);
    }
}

}  // namespace sdepth_test
