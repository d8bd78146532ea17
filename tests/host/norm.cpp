// SPDX-License-Identifier: MIT
// RMS norm, gather and scatter of the host backend.
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
    sdepth::RmsNormArgs<P> args;
    sdepth::RmsNormBackwardArgs<P> back;
    std::vector<T> x, w, y, rstd, grad_y, grad_x, grad_w;

    problem(sdepth::batch_rows rows, int width, bool adds) {
        const long long n = rows.capacity();
        x = samples<T>(n * width, 1), w = samples<T>(width, 2), grad_y = samples<T>(n * width, 3);
        y = poison<T>(n * width), rstd = poison<T>(n);
        grad_x = adds ? samples<T>(n * width, 4) : poison<T>(n * width), grad_w = samples<T>(width, 5);
        poison_dead(x, rows, width), poison_dead(grad_y, rows, width), poison_dead(grad_x, rows, width);
        args = {rows, width, 1e-6, x.data(), w.data(), y.data(), rstd.data()};
        back = {.forward = args,
                .grad_y = grad_y.data(),
                .grad_x = grad_x.data(),
                .adds_to_grad_x = adds,
                .grad_weight = grad_w.data()};
    }
    void run(sdepth::host<T>& host) {
        host.rms_norm(args);
        host.rms_norm_backward(back);
    }
};

}  // namespace

TEST_CASE("rms_norm: value, slopes, dead rows", "[norm]") {
    const std::vector<int> live{2, 0, 4};
    sdepth::host<double> host(2);
    for (const int* counts : {static_cast<const int*>(nullptr), live.data()})
        for (const bool adds : {false, true}) {
            const sdepth::batch_rows rows{3, {4, counts}};
            problem<double> p(rows, 19, adds);
            const std::vector<double> w0 = p.grad_w, x0 = p.grad_x;
            p.run(host);
            CHECK(dead_alone_are_nan(p.y, rows, 19));
            CHECK(dead_alone_are_nan(p.rstd, rows, 1));
            CHECK(dead_alone_are_nan(p.grad_x, rows, 19));
            double square = 0;
            for (std::size_t c = 0; c < 19; ++c) square += p.x[c] * p.x[c];
            CHECK(p.y[3] == Approx(p.w[3] * p.x[3] / std::sqrt(square / 19 + 1e-6)).epsilon(1e-14));

            for (std::size_t i = 0; i < w0.size(); ++i) p.grad_w[i] -= w0[i];
            for (std::size_t i = 0; i < x0.size() && adds; ++i) p.grad_x[i] -= x0[i];
            const auto loss = [&] {
                host.rms_norm(p.args);
                return inner(p.y, p.grad_y);
            };
            CHECK(gradient_defect(loss, p.x, p.grad_x) <= 1e-6);
            CHECK(gradient_defect(loss, p.w, p.grad_w) <= 1e-6);
        }
}

TEST_CASE("rms_norm: float agrees with double and with itself", "[norm]") {
    const std::vector<int> live{200, 0, 77};
    const sdepth::batch_rows rows{3, {200, live.data()}};
    sdepth::host<double> oracle(1);
    sdepth::host<float> one(1), three(3);
    problem<double> want(rows, 100, true);
    problem<float> got(rows, 100, true), again(rows, 100, true);
    want.run(oracle), got.run(one), again.run(three);
    CHECK(distance(got.y, want.y) <= tolerance<float>(100, 4));
    CHECK(distance(got.rstd, want.rstd) <= tolerance<float>(100, 3));
    CHECK(distance(got.grad_x, want.grad_x) <= tolerance<float>(100, 8));
    CHECK(distance(got.grad_w, want.grad_w) <= tolerance<float>(277, 4));
    CHECK((same_bits(got.y, again.y) && same_bits(got.grad_x, again.grad_x) && same_bits(got.grad_w, again.grad_w)));
}

TEST_CASE("gather packs the chosen rows and scatter puts or adds them back", "[norm]") {
    using P = sdepth::uniform_precision<double>;
    const std::vector<int> live{2, 0, 3}, ids{1, 4, -9, -9, -9, -9, 0, 2, 3};
    const sdepth::batch_rows rows{3, {3, live.data()}};
    sdepth::host<double> host(2);
    const std::vector<double> x = samples<double>(3 * 5 * 2, 1);
    std::vector<double> out = poison<double>(9 * 2);
    host.gather(sdepth::GatherArgs<P>{rows, 5, 2, ids.data(), x.data(), out.data()});
    CHECK(dead_alone_are_nan(out, rows, 2));
    CHECK((out[0] == x[2] && out[1] == x[3] && out[2] == x[8] && out[12] == x[20] && out[17] == x[27]));

    const std::vector<double> before = samples<double>(3 * 5 * 2, 2);
    for (const bool adds : {false, true}) {
        std::vector<double> back = before, want = before;
        for (const std::size_t at : {2u, 3u, 8u, 9u, 20u, 21u, 24u, 25u, 26u, 27u})
            want[at] = adds ? before[at] + x[at] : x[at];
        host.scatter(sdepth::ScatterArgs<P>{rows, 5, 2, adds, ids.data(), out.data(), back.data()});
        CHECK(back == want);
    }
}

TEST_CASE("add sums live rows, in place too", "[norm]") {
    using P = sdepth::uniform_precision<double>;
    const std::vector<int> live{2, 0};
    const sdepth::batch_rows rows{2, {3, live.data()}};
    sdepth::host<double> host(2);
    std::vector<double> x = samples<double>(12, 1), a = samples<double>(12, 2), sum = poison<double>(12);
    poison_dead(x, rows, 2), poison_dead(a, rows, 2);
    host.add(sdepth::AddArgs<P>{rows, 2, x.data(), a.data(), sum.data()});
    CHECK(dead_alone_are_nan(sum, rows, 2));
    for (std::size_t i = 0; i < 4; ++i) CHECK(sum[i] == x[i] + a[i]);
    host.add(sdepth::AddArgs<P>{rows, 2, x.data(), a.data(), x.data()});
    CHECK(same_bits(x, sum));
}
