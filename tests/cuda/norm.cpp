// SPDX-License-Identifier: MIT
// Norm, gather, scatter and add on the GPU against the host oracle in fp64.
#include "numbers.hpp"
#include "operations.hpp"
#include "row_cases.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "support/catch.hpp"

namespace sdepth_test {

namespace {

using on_device::exact;

struct norm_problem {
    row_case of;
    int width;
    bool adds;
    std::vector<double> x, weight, y, rstd, grad_y, grad_x, also, grad_weight;

    norm_problem(const row_case& c, int w, bool a, std::mt19937_64& random) : of(c), width(w), adds(a) {
        x = c.draw(w, random), grad_y = c.draw(w, random), weight = normal_fp32(count(1, 1, w), random);
        grad_x = adds ? c.draw(w, random) : std::vector<double>(x.size(), nan);
        also = c.draw(w, random), grad_weight = normal_fp32(count(1, 1, w), random);
        y.assign(x.size(), nan), rstd.assign(count(c.batch, c.capacity, 1), nan);
    }
    sdepth::RmsNormArgs<exact> args() {
        return {of.rows(), width, 1e-3, x.data(), weight.data(), y.data(), rstd.data()};
    }
    sdepth::RmsNormBackwardArgs<exact> back() {
        return {args(), grad_y.data(), grad_x.data(), adds, adds ? also.data() : nullptr, grad_weight.data()};
    }
};

void check_norm(const row_case& c, int width, bool adds) {
    std::mt19937_64 random(test_seed());
    INFO("norm " << c.batch << " x " << c.capacity << ", width " << width << ", adds " << adds);
    sdepth::host<double> host(1);
    norm_problem want(c, width, adds, random), got = want, again = want;
    host.rms_norm(want.args());
    on_device::rms_norm(got.args()), on_device::rms_norm(again.args());
    check_rounded("y", got.y, want.y, {.unit = 0x1p-8, .terms = double(width)});
    check_rounded("rstd", got.rstd, want.rstd, {.unit = 0x1p-24, .terms = double(width)});
    CHECK((same_bits(got.y, again.y) && same_bits(got.rstd, again.rstd)));

    // Both backwards start from the same fp32 numbers.
    for (double& r : want.rstd) r = static_cast<float>(r);
    got.rstd = again.rstd = want.rstd;
    host.rms_norm_backward(want.back());
    on_device::rms_norm_backward(got.back()), on_device::rms_norm_backward(again.back());
    check_rounded("grad_x", got.grad_x, want.grad_x, {.unit = 0x1p-8, .terms = double(width), .steps = 12});
    check_rounded("also", got.also, want.also, {.unit = 0x1p-8, .mixed = 1, .terms = double(width), .steps = 12});
    check_rounded("grad_weight", got.grad_weight, want.grad_weight,
                  {.unit = 0x1p-24, .terms = double(c.batch * c.capacity)});
    CHECK((same_bits(got.grad_x, again.grad_x) && same_bits(got.grad_weight, again.grad_weight)));
}

struct move_problem {
    row_case of;
    int sequence, width;
    std::vector<int> ids;
    std::vector<double> x, out;

    move_problem(const row_case& c, int w, bool out_given, std::mt19937_64& random)
        : of(c), sequence(2 * c.capacity + 3), width(w) {
        for (int b = 0; b < c.batch; ++b)
            for (int i = 0; i < c.capacity; ++i) ids.push_back(2 * i + int(random() % 2));
        x = normal(count(c.batch, sequence, w), random);
        out = out_given ? c.draw(w, random) : std::vector<double>(count(c.batch, c.capacity, w), nan);
    }
};

void check_moves(const row_case& c, int width) {
    std::mt19937_64 random(test_seed());
    INFO("moves " << c.batch << " x " << c.capacity << ", width " << width);
    sdepth::host<double> host(1);
    {
        move_problem want(c, width, false, random), got = want;
        const auto args = [](move_problem& p) -> sdepth::GatherArgs<exact> {
            return {p.of.rows(), p.sequence, p.width, p.ids.data(), p.x.data(), p.out.data()};
        };
        auto fused = want;
        host.gather(args(want)), on_device::gather(args(got));
        CHECK(same_bits(got.out, want.out));

        const std::vector<double> weight = normal_fp32(count(1, 1, width), random);
        std::vector<double> y(want.out.size(), nan), fused_y = y, rstd(c.numbers(1), nan), fused_rstd = rstd;
        const auto norm = [&](const move_problem& p, std::vector<double>& to, std::vector<double>& scales) {
            return sdepth::RmsNormArgs<exact>{c.rows(),      width,     1e-3,         p.out.data(),
                                              weight.data(), to.data(), scales.data()};
        };
        host.rms_norm(norm(want, y, rstd));
        on_device::gather_rms_norm(args(fused), norm(fused, fused_y, fused_rstd));
        CHECK(same_bits(fused.out, want.out));
        check_rounded("y of gathered rows", fused_y, y, {.unit = 0x1p-8, .terms = double(width)});
        check_rounded("rstd of gathered rows", fused_rstd, rstd, {.unit = 0x1p-24, .terms = double(width)});
    }
    for (const bool adds : {false, true}) {
        move_problem want(c, width, true, random), got = want;
        const auto args = [adds](move_problem& p) -> sdepth::ScatterArgs<exact> {
            return {p.of.rows(), p.sequence, p.width, adds, p.ids.data(), p.out.data(), p.x.data()};
        };
        host.scatter(args(want)), on_device::scatter(args(got));
        check_rounded("scatter", got.x, want.x, in_bf16);
    }
    std::vector<double> x = c.draw(width, random), a = c.draw(width, random), want(x.size(), nan), got = want;
    host.add({c.rows(), width, x.data(), a.data(), want.data()});
    on_device::add({c.rows(), width, x.data(), a.data(), got.data()});
    check_rounded("add", got, want, in_bf16);

    // The sum and its norm in one kernel: the same bits as one after the other.
    const std::vector<double> weight = normal_fp32(count(1, 1, width), random);
    std::vector<double> sum(x.size(), nan), y = sum, again_y = sum, rstd(c.numbers(1), nan), again_rstd = rstd;
    on_device::rms_norm({c.rows(), width, 1e-3, got.data(), weight.data(), y.data(), rstd.data()});
    on_device::add_rms_norm({c.rows(), width, x.data(), a.data(), sum.data()},
                            {c.rows(), width, 1e-3, sum.data(), weight.data(), again_y.data(), again_rstd.data()});
    CHECK((same_bits(sum, got) && same_bits(again_y, y) && same_bits(again_rstd, rstd)));
}

}  // namespace

TEST_CASE("rms_norm equals the oracle", "[norm]") {
    for (const row_case& c : row_cases())
        for (const int width : {8, 64, 1000, 1024, 1536, 2050, 4096, 8192, 7, 1})
            if (c.capacity < 1000 || width <= 1024) check_norm(c, width, width % 16 == 0);
    check_norm({1, 40, {}}, 1024, false);
}
TEST_CASE("gather, scatter and add equal the oracle", "[norm]") {
    for (const row_case& c : row_cases())
        for (const int width : {8, 1024, 3080, 5}) check_moves(c, width);
}
TEST_CASE("rms_norm, gather, scatter and add on small shapes", "[norm][small]") {
    for (const row_case& c : small_row_cases())
        for (const int width : {24, 1040, 5}) check_norm(c, width, width == 24), check_moves(c, width);
}
TEST_CASE("rms_norm refuses what it has no kernel for", "[norm]") {
    sdepth::RmsNormArgs<exact> a{.rows = {1, {1}}, .width = 8193};
    CHECK_THROWS_AS(on_device::rms_norm(a), sdepth::error);
}

}  // namespace sdepth_test
