// SPDX-License-Identifier: MIT
// Preparation of queries and keys on the host backend.
#include <cmath>
#include <vector>

#include "support/catch.hpp"
#include "support/host_operations.hpp"
#include "support/samples.hpp"
#include "support/tolerance.hpp"

namespace {

using namespace sdepth_test;
using sdepth::qk_norm;

template <class T>
struct problem {
    using P = sdepth::uniform_precision<T>;
    sdepth::QkPrepareArgs<P> args;
    sdepth::QkPrepareBackwardArgs<P> back;
    std::vector<T> x, w, y, rstd, grad_y, grad_x, grad_w;

    problem(sdepth::batch_rows rows, int heads, int head_dim, qk_norm norm, bool rotary, const int* positions) {
        const long long n = rows.capacity() * heads * head_dim;
        const int weights = norm == qk_norm::full_width ? heads * head_dim : head_dim;
        x = samples<T>(n, 1), w = samples<T>(weights, 2), grad_y = samples<T>(n, 3), grad_w = samples<T>(weights, 4);
        y = grad_x = poison<T>(n), rstd = poison<T>(rows.capacity() * heads);
        poison_dead(x, rows, heads * head_dim), poison_dead(grad_y, rows, heads * head_dim);
        args = {rows, heads, head_dim, norm, 1e-6, rotary, 1e4, x.data(), w.data(), positions, y.data(), rstd.data()};
        back = {args, grad_y.data(), grad_x.data(), grad_w.data()};
        if (norm == qk_norm::none) args.weight = nullptr, back.forward.weight = nullptr, back.grad_weight = nullptr;
    }
    void run(sdepth::host<T>& host) {
        host.qk_prepare(args);
        host.qk_prepare_backward(back);
    }
};

}  // namespace

TEST_CASE("qk_prepare: slopes, dead rows, in place", "[rotary]") {
    const std::vector<int> live{2, 0, 3}, positions{0, 5, -1, -1, -1, -1, 2, 3, 40};
    const sdepth::batch_rows rows{3, {3, live.data()}};
    sdepth::host<double> host(2);
    for (const qk_norm norm : {qk_norm::none, qk_norm::per_head, qk_norm::full_width})
        for (const bool rotary : {false, true})
            for (const int* place : {static_cast<const int*>(nullptr), positions.data()}) {
                problem<double> p(rows, 3, 6, norm, rotary, place);
                std::vector<double> w0 = p.grad_w;
                p.run(host);
                CHECK(dead_alone_are_nan(p.y, rows, 18));
                CHECK(dead_alone_are_nan(p.grad_x, rows, 18));
                const auto loss = [&] {
                    host.qk_prepare(p.args);
                    return inner(p.y, p.grad_y);
                };
                CHECK(gradient_defect(loss, p.x, p.grad_x) <= 1e-6);
                if (norm == qk_norm::none) {
                    CHECK(p.grad_w == w0);
                } else {
                    for (std::size_t i = 0; i < w0.size(); ++i) p.grad_w[i] -= w0[i];
                    CHECK(gradient_defect(loss, p.w, p.grad_w) <= 1e-6);
                }
                problem<double> in_place(rows, 3, 6, norm, rotary, place);
                host.qk_prepare(in_place.args);
                in_place.back.grad_x = in_place.grad_y.data();
                host.qk_prepare_backward(in_place.back);
                CHECK(same_bits(in_place.grad_y, p.grad_x));
            }
}

TEST_CASE("rotary turns pairs by position times speed, and products see only the distance", "[rotary]") {
    using P = sdepth::uniform_precision<double>;
    sdepth::host<double> host(1);
    const std::vector<double> x{1, 2, 3, 4};
    const auto turned = [&](int position) {
        std::vector<double> y(4);
        sdepth::QkPrepareArgs<P> args{{1, {1, nullptr}}, 1, 4, qk_norm::none, 0, true, 100};
        args.x = x.data(), args.y = y.data(), args.positions = &position;
        host.qk_prepare(args);
        return y;
    };
    CHECK(turned(0) == x);
    const std::vector<double> y = turned(3);  // speeds 1 and 100^(-1/2)
    CHECK(y[0] == Approx(1 * std::cos(3.) - 3 * std::sin(3.)).epsilon(1e-14));
    CHECK(y[2] == Approx(3 * std::cos(3.) + 1 * std::sin(3.)).epsilon(1e-14));
    CHECK(y[1] == Approx(2 * std::cos(.3) - 4 * std::sin(.3)).epsilon(1e-14));
    CHECK(y[3] == Approx(4 * std::cos(.3) + 2 * std::sin(.3)).epsilon(1e-14));
    CHECK(inner(turned(7), turned(2)) == Approx(inner(turned(105), turned(100))).epsilon(1e-12));
}

TEST_CASE("qk_prepare: float agrees with double and with itself", "[rotary]") {
    const std::vector<int> live{90, 0, 33};
    const sdepth::batch_rows rows{3, {90, live.data()}};
    sdepth::host<double> oracle(1);
    sdepth::host<float> one(1), three(3);
    for (const qk_norm norm : {qk_norm::none, qk_norm::per_head, qk_norm::full_width}) {
        problem<double> want(rows, 3, 32, norm, true, nullptr);
        problem<float> got(rows, 3, 32, norm, true, nullptr), again(rows, 3, 32, norm, true, nullptr);
        want.run(oracle), got.run(one), again.run(three);
        const int spanned = norm == qk_norm::full_width ? 96 : 32;
        CHECK(distance(got.y, want.y) <= tolerance<float>(spanned, 7));
        CHECK(distance(got.grad_x, want.grad_x) <= tolerance<float>(spanned, 11));
        CHECK(distance(got.grad_w, want.grad_w) <= tolerance<float>(123 * 96 / spanned, 7));
        CHECK(
            (same_bits(got.y, again.y) && same_bits(got.grad_x, again.grad_x) && same_bits(got.grad_w, again.grad_w)));
    }
}

TEST_CASE("qk_prepare refuses what has no phase", "[rotary]") {
    sdepth::host<double> host(1);
    problem<double> odd({1, {2, nullptr}}, 1, 3, qk_norm::none, true, nullptr);
    CHECK_THROWS_AS(host.qk_prepare(odd.args), sdepth::error);
    const std::vector<int> positions{0, -1};
    problem<double> negative({1, {2, nullptr}}, 1, 4, qk_norm::none, true, positions.data());
    CHECK_THROWS_AS(host.qk_prepare(negative.args), sdepth::error);
}
