// SPDX-License-Identifier: MIT
// Preparation of queries and keys on the GPU against the host oracle in fp64.
#include "numbers.hpp"
#include "operations.hpp"
#include "row_cases.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "support/catch.hpp"

namespace sdepth_test {

namespace {

using on_device::exact;
using sdepth::qk_norm;

struct qk_case {
    int heads, dim;
    qk_norm norm;
    bool rotary, positions;
};

struct qk_problem {
    row_case of;
    qk_case c;
    std::vector<int> positions;
    std::vector<double> x, weight, y, rstd, grad_y, grad_x, grad_weight;

    qk_problem(const row_case& rows, const qk_case& what, std::mt19937_64& random) : of(rows), c(what) {
        const int width = c.heads * c.dim;
        x = of.draw(width, random), grad_y = of.draw(width, random);
        y.assign(x.size(), nan), grad_x = y, rstd.assign(of.numbers(c.heads), nan);
        const int weights = c.norm == qk_norm::full_width ? width : c.dim;
        weight = normal_fp32(count(1, 1, weights), random), grad_weight = normal_fp32(weight.size(), random);
        for (std::size_t i = 0; i < of.numbers(1); ++i) positions.push_back(int(random() % 30000));
    }
    sdepth::QkPrepareArgs<exact> args() {
        return {.rows = of.rows(),
                .heads = c.heads,
                .head_dim = c.dim,
                .norm = c.norm,
                .epsilon = 1e-3,
                .rotary = c.rotary,
                .base = 1e4,
                .x = x.data(),
                .weight = c.norm == qk_norm::none ? nullptr : weight.data(),
                .positions = c.positions ? positions.data() : nullptr,
                .y = y.data(),
                .rstd = c.norm == qk_norm::none ? nullptr : rstd.data()};
    }
    sdepth::QkPrepareBackwardArgs<exact> back() {
        return {args(), grad_y.data(), grad_x.data(), c.norm == qk_norm::none ? nullptr : grad_weight.data()};
    }
};

void check_qk(const row_case& rows, const qk_case& c) {
    std::mt19937_64 random(test_seed());
    INFO("qk " << rows.batch << " x " << rows.capacity << ", " << c.heads << " heads of " << c.dim << ", norm "
               << int(c.norm) << ", rotary " << c.rotary << ", positions " << c.positions);
    // The norm over the full width stores its rows in bfloat16 before they turn, and mixes pairs.
    const double mixed = c.norm == qk_norm::full_width && c.rotary ? 1 : 0;
    const double terms = c.norm == qk_norm::full_width ? c.heads * c.dim : c.dim;
    sdepth::host<double> host(1);
    qk_problem want(rows, c, random), got = want, again = want;
    host.qk_prepare(want.args());
    on_device::qk_prepare(got.args()), on_device::qk_prepare(again.args());
    check_rounded("y", got.y, want.y, {.unit = 0x1p-8, .mixed = mixed, .terms = terms, .steps = 12});
    check_rounded("rstd", got.rstd, want.rstd, {.unit = 0x1p-24, .terms = terms});
    CHECK((same_bits(got.y, again.y) && same_bits(got.rstd, again.rstd)));

    for (double& r : want.rstd) r = static_cast<float>(r);
    got.rstd = again.rstd = want.rstd;
    if (rows.capacity % 2 == 0) {  // grad_x may be grad_y
        auto in_place = want;
        in_place.grad_x = in_place.grad_y;
        auto g = in_place.back();
        g.grad_y = g.grad_x;
        on_device::qk_prepare_backward(g);
        host.qk_prepare_backward(want.back());
        check_rounded("grad_x in place", in_place.grad_x, want.grad_x,
                      {.unit = 0x1p-8, .mixed = mixed, .terms = terms, .steps = 16});
    } else {
        host.qk_prepare_backward(want.back());
    }
    on_device::qk_prepare_backward(got.back()), on_device::qk_prepare_backward(again.back());
    check_rounded("grad_x", got.grad_x, want.grad_x, {.unit = 0x1p-8, .mixed = mixed, .terms = terms, .steps = 16});
    // Rows that turned back in bfloat16 bring their rounding to the sums, in random directions.
    const double items = double(rows.batch) * rows.capacity * (mixed > 0 ? 1 : c.heads);
    check_rounded("grad_weight", got.grad_weight, want.grad_weight,
                  {.unit = mixed > 0 ? 0x1p-8 : 0x1p-24, .mixed = mixed, .terms = items, .steps = 12});
    CHECK((same_bits(got.grad_x, again.grad_x) && same_bits(got.grad_weight, again.grad_weight)));
}

}  // namespace

TEST_CASE("qk_prepare equals the oracle", "[rotary]") {
    for (const row_case& rows : row_cases())
        for (const qk_norm norm : {qk_norm::none, qk_norm::per_head, qk_norm::full_width})
            for (const auto& c : std::vector<qk_case>{{16, 128, norm, true, true},
                                                      {8, 64, norm, true, false},
                                                      {3, 128, norm, true, false},
                                                      {5, 16, norm, true, true},
                                                      {2, 256, norm, true, true},
                                                      {7, 96, norm, true, true},
                                                      {3, 6, norm, true, false},
                                                      {4, 128, norm, false, false},
                                                      {2, 33, norm, false, false}})
                if (rows.capacity < 1000 || c.heads * c.dim <= 512) check_qk(rows, c);
}
TEST_CASE("qk_prepare on small shapes", "[rotary][small]") {
    for (const row_case& rows : small_row_cases())
        for (const qk_norm norm : {qk_norm::none, qk_norm::per_head, qk_norm::full_width}) {
            check_qk(rows, {6, 64, norm, true, true});
            check_qk(rows, {3, 20, norm, true, false});
        }
}
TEST_CASE("qk_prepare refuses what it has no kernel for", "[rotary]") {
    sdepth::QkPrepareArgs<exact> a{.rows = {1, {1}}, .heads = 1, .head_dim = 258};
    CHECK_THROWS_AS(on_device::qk_prepare(a), sdepth::error);
    a.head_dim = 33;
    CHECK_THROWS_AS(on_device::qk_prepare(a), sdepth::error);
}

}  // namespace sdepth_test
