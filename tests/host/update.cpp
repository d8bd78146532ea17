// SPDX-License-Identifier: MIT
// The optimiser's operations on the host backend.
#include <cmath>
#include <limits>
#include <vector>

#include "support/catch.hpp"
#include "support/host_operations.hpp"
#include "support/samples.hpp"
#include "support/tolerance.hpp"

namespace {

using namespace sdepth_test;

// Weights of `matrices` matrices, with what Muon needs.
template <class T>
struct muon_problem {
    sdepth::MuonArgs<sdepth::uniform_precision<T>> args;
    sdepth::update_scalars scalars{.rate = .02};
    std::vector<T> weight, grad, first, scratch;

    muon_problem(const muon_problem&) = delete;
    muon_problem& operator=(const muon_problem&) = delete;
    muon_problem(int matrices, int rows, int cols) {
        const long long n = static_cast<long long>(matrices) * rows * cols;
        weight = samples<T>(n, 1), grad = samples<T>(n, 2), first = samples<T>(n, 3);
        scratch = poison<T>(sdepth::muon_scratch(rows, cols));
        args.matrices = matrices, args.rows = rows, args.cols = cols, args.scalars = &scalars;
        args.master = weight.data(), args.grad = grad.data(), args.first = first.data(), args.scratch = scratch.data();
    }
};

double rms(const std::vector<double>& x) { return std::sqrt(inner(x, x) / static_cast<double>(x.size())); }

}  // namespace

TEST_CASE("squares adds the sum of squares", "[update]") {
    const std::vector<float> x = samples<float>(100003, 1);
    double want = 3, got = 3, again = 3;
    for (const float e : x) want += static_cast<double>(e) * static_cast<double>(e);
    sdepth::host<float>(1).squares({100003, x.data(), &got});
    sdepth::host<float>(4).squares({100003, x.data(), &again});
    CHECK(got == Approx(want).epsilon(1e-13));
    CHECK(got == again);
    sdepth::host<float>(2).squares({0, x.data(), &again});
    CHECK(got == again);
}

TEST_CASE("begin_update: clipping, corrections of the first moments, what is not finite", "[update]") {
    sdepth::host<double> host(1);
    const sdepth::update_inputs inputs{.rate = .25, .step = 3};
    double squares = 16, loss = 2;
    sdepth::update_scalars s;
    sdepth::BeginUpdateArgs args{
        .beta1 = .5, .beta2 = .75, .clip = 2, .inputs = &inputs, .squares = &squares, .loss = &loss, .scalars = &s};
    host.begin_update(args);
    CHECK((s.rate == .25 && s.norm == 4 && s.grad_scale == .5 && s.finite == 1));
    CHECK((s.correct1 == 1 / (1 - .125) && s.correct2 == 1 / (1 - .421875)));
    for (const double clip : {0., 4.}) {
        args.clip = clip;
        host.begin_update(args);
        CHECK(s.grad_scale == 1);
    }
    const double infinity = std::numeric_limits<double>::infinity();
    for (double* const broken : {&squares, &loss})
        for (const double value : {infinity, -infinity, infinity - infinity}) {
            const double keep = *broken;
            *broken = value;
            host.begin_update(args);
            CHECK(s.finite == 0);
            *broken = keep;
        }
}

TEST_CASE("no update changes anything after a step that is not finite", "[update]") {
    sdepth::host<double> host(1);
    muon_problem<double> p(1, 4, 6);
    p.scalars.finite = 0;
    std::vector<double> second = samples<double>(24, 4);
    const std::vector<double> weight = p.weight, first = p.first, v = second;
    host.muon(p.args);
    host.adamw({.count = 24,
                .scalars = &p.scalars,
                .master = p.weight.data(),
                .grad = p.grad.data(),
                .first = p.first.data(),
                .second = second.data()});
    CHECK((p.weight == weight && p.first == first && second == v));
}

TEST_CASE("adamw: layers apart, gradients in reverse order, half the rate", "[update]") {
    sdepth::host<double> host(2);
    const sdepth::update_scalars scalars{.rate = .1, .correct1 = 10, .correct2 = 20};
    std::vector<double> w = samples<double>(40, 1), g = samples<double>(40, 2), m(40), v(40), want = w;
    host.adamw({.layers = 3,
                .count = 5,
                .stride = 16,
                .grad_stride = -16,
                .second_stride = 6,
                .share = .5,
                .scalars = &scalars,
                .master = w.data() + 1,
                .grad = g.data() + 33,
                .first = m.data() + 1,
                .second = v.data() + 1});
    for (std::size_t layer = 0; layer < 3; ++layer)
        for (std::size_t i = 0; i < 5; ++i) {
            const double gradient = g[33 - 16 * layer + i];
            want[1 + 16 * layer + i] -= .05 * gradient / (std::abs(gradient) + 1e-8);
        }
    CHECK(distance(w, want) <= tolerance<double>(1, 8));
    std::vector<double> squares(40);
    for (std::size_t layer = 0; layer < 3; ++layer)
        for (std::size_t i = 0; i < 5; ++i) squares[1 + 6 * layer + i] = .05 * std::pow(g[33 - 16 * layer + i], 2);
    CHECK(distance(v, squares) <= tolerance<double>(1, 8));
}

TEST_CASE("adamw follows its formula over steps", "[update]") {
    const int n = 40000;
    sdepth::host<double> host(2);
    sdepth::host<float> single(3);
    std::vector<double> w = samples<double>(n, 1), m(n), v(n), ww = w, mm(n), vv(n);
    std::vector<float> w32 = samples<float>(n, 1), m32(n), v32(n);
    for (int step = 1; step <= 3; ++step) {
        const std::vector<double> g = samples<double>(n, static_cast<std::uint64_t>(10 + step));
        const std::vector<float> g32 = samples<float>(n, static_cast<std::uint64_t>(10 + step));
        const sdepth::update_scalars scalars{.rate = .01,
                                             .grad_scale = .5,
                                             .correct1 = 1 / (1 - std::pow(.9, step)),
                                             .correct2 = 1 / (1 - std::pow(.95, step))};
        host.adamw({.count = n,
                    .decay = .1,
                    .scalars = &scalars,
                    .master = w.data(),
                    .grad = g.data(),
                    .first = m.data(),
                    .second = v.data()});
        single.adamw({.count = n,
                      .decay = .1,
                      .scalars = &scalars,
                      .master = w32.data(),
                      .grad = g32.data(),
                      .first = m32.data(),
                      .second = v32.data()});
        for (std::size_t i = 0; i < n; ++i) {
            mm[i] = .9 * mm[i] + .1 * .5 * g[i];
            vv[i] = .95 * vv[i] + .05 * .25 * g[i] * g[i];
            const double by = mm[i] / (1 - std::pow(.9, step)) / (std::sqrt(vv[i] / (1 - std::pow(.95, step))) + 1e-8);
            ww[i] -= .01 * (by + .1 * ww[i]);
        }
        CHECK(distance(w, ww) <= tolerance<double>(step, 8));
        CHECK(distance(m, mm) <= tolerance<double>(step, 4));
        CHECK(distance(v, vv) <= tolerance<double>(step, 16));
    }
    CHECK(distance(w32, ww) <= tolerance<float>(3, 8));
}

TEST_CASE("muon: the update's root mean square is match times rate", "[update]") {
    sdepth::host<double> host(2);
    struct shape {
        int rows, cols;
    };
    for (const shape s : {shape{128, 128}, {64, 256}, {256, 64}, {96, 100}}) {
        muon_problem<double> p(1, s.rows, s.cols);
        const std::vector<double> before = p.weight;
        p.first.assign(p.first.size(), 0.);
        host.muon(p.args);
        std::vector<double> change = p.weight;
        for (std::size_t i = 0; i < change.size(); ++i) change[i] -= before[i];
        CAPTURE(s.rows, s.cols);
        CHECK(rms(change) / (.2 * .02) == Approx(1).epsilon(.05));
    }

    // Rank 1: one singular value, at most 1.2 * 3/2.
    muon_problem<double> flat(1, 64, 64);
    const std::vector<double> before = flat.weight;
    for (std::size_t i = 0; i < flat.grad.size(); ++i) flat.grad[i] = flat.grad[i / 64] * flat.grad[i % 64 + 64];
    flat.first.assign(flat.first.size(), 0.);
    host.muon(flat.args);
    std::vector<double> change = flat.weight;
    for (std::size_t i = 0; i < change.size(); ++i) change[i] -= before[i];
    CHECK(rms(change) <= .2 * .02 * 1.8 / std::sqrt(64.));
    CHECK(rms(change) > 0);
}

TEST_CASE("muon: momentum, decay, five steps of Newton and Schulz, by hand", "[update]") {
    sdepth::host<double> host(1);
    struct shape {
        int rows, cols;
    };
    for (const shape s : {shape{3, 5}, {5, 3}, {1, 4}})
        for (const bool nesterov : {false, true}) {
            const int rows = s.rows, cols = s.cols;
            muon_problem<double> p(1, rows, cols);
            p.args.nesterov = nesterov, p.args.decay = .3, p.scalars.grad_scale = .5;
            const auto at = [cols](int i, int j) { return static_cast<std::size_t>(i * cols + j); };
            std::vector<double> m = p.first, x(m.size()), want = p.weight;
            double square = 0;
            for (std::size_t i = 0; i < m.size(); ++i) {
                m[i] = .95 * m[i] + .5 * p.grad[i];
                x[i] = nesterov ? .5 * p.grad[i] + .95 * m[i] : m[i];
                square += x[i] * x[i];
            }
            for (double& e : x) e /= std::sqrt(square);
            for (int step = 0; step < 5; ++step) {  // X <- a X + b (X X') X + c (X X') (X X') X
                const auto through_gram = [&](const std::vector<double>& y) {
                    std::vector<double> out(y.size());
                    for (int i = 0; i < rows; ++i)
                        for (int k = 0; k < rows; ++k) {
                            double gram = 0;
                            for (int j = 0; j < cols; ++j) gram += x[at(i, j)] * x[at(k, j)];
                            for (int j = 0; j < cols; ++j) out[at(i, j)] += gram * y[at(k, j)];
                        }
                    return out;
                };
                const std::vector<double> once = through_gram(x), twice = through_gram(once);
                for (std::size_t i = 0; i < x.size(); ++i) x[i] = 3.4445 * x[i] - 4.7750 * once[i] + 2.0315 * twice[i];
            }
            const double rest = std::min(1.5, std::sqrt(std::min(rows, cols) / inner(x, x)));
            for (std::size_t i = 0; i < x.size(); ++i)
                want[i] -= .02 * (.3 * want[i] + .2 * std::sqrt(std::max(rows, cols)) * rest * x[i]);
            host.muon(p.args);
            CHECK(distance(p.weight, want) <= tolerance<double>(50, 100));
            CHECK(distance(p.first, m) <= tolerance<double>(1, 2));
        }
}

TEST_CASE("muon: matrices do not mix, a zero gradient moves nothing, threads do not matter", "[update]") {
    muon_problem<float> together(3, 40, 70), again(3, 40, 70);
    sdepth::host<float>(1).muon(together.args);
    sdepth::host<float>(3).muon(again.args);
    CHECK((same_bits(together.weight, again.weight) && same_bits(together.first, again.first)));
    muon_problem<float> apart(3, 40, 70);
    sdepth::host<float> host(2);
    for (int i = 0; i < 3; ++i) {
        auto one = apart.args;
        one.matrices = 1;
        one.master += i * 2800, one.grad += i * 2800, one.first += i * 2800;
        host.muon(one);
    }
    CHECK(same_bits(apart.weight, together.weight));

    muon_problem<float> still(1, 4, 4);
    still.grad.assign(16, 0.f), still.first.assign(16, 0.f);
    const std::vector<float> before = still.weight;
    host.muon(still.args);
    CHECK(still.weight == before);
}
