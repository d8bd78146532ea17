// SPDX-License-Identifier: MIT
// Host attention against finite differences and closed forms.
#include "sdepth/kernels/host/attention.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "support/catch.hpp"

namespace {

using sdepth::AttentionArgs;
using sdepth::AttentionBackwardArgs;

std::vector<double> normal(std::size_t n, std::mt19937_64& random) {
    std::normal_distribution<double> draw;
    std::vector<double> x(n);
    for (double& e : x) e = draw(random);
    return x;
}

// One problem with its tensors; NaN in every output until an operation writes it.
struct problem {
    AttentionArgs<double> args;
    std::vector<double> q, k, v, o, lse, grad_o, grad_q, grad_k, grad_v;

    problem(AttentionArgs<double> a, std::uint64_t seed) : args(a) {
        std::mt19937_64 random(seed);
        const double nan = std::numeric_limits<double>::quiet_NaN();
        const auto n = [&](int rows, int stride) { return static_cast<std::size_t>(a.batch * rows * stride); };
        const std::size_t nq = n(a.queries.capacity, a.q_stride()), nk = n(a.keys.capacity, a.kv_stride());
        const std::size_t no = n(a.queries.capacity, a.heads * a.head_dim);
        q = normal(nq, random), k = normal(nk, random), v = normal(nk, random), grad_o = normal(no, random);
        o.assign(no, nan), lse.assign(n(a.queries.capacity, a.heads), nan);
        grad_q.assign(nq, nan), grad_k.assign(nk, nan), grad_v.assign(nk, nan);
        args.q = q.data(), args.k = k.data(), args.v = v.data(), args.o = o.data(), args.lse = lse.data();
    }

    // <grad_o, o>, the scalar whose gradient the backward gives.
    double loss() {
        sdepth::on_host::attention_forward(args);
        double sum = 0;
        for (std::size_t i = 0; i < o.size(); ++i) sum += o[i] * grad_o[i];
        return sum;
    }

    void backward() {
        AttentionBackwardArgs<double> g{args, grad_o.data(), grad_q.data(), grad_k.data(), grad_v.data()};
        sdepth::on_host::attention_backward(g);
    }

    double worst_slope_error(std::vector<double>& x, const std::vector<double>& grad) {
        double worst = 0;
        const double step = 1e-5;
        for (std::size_t i = 0; i < x.size(); i += 3) {
            const double keep = x[i];
            x[i] = keep + step;
            const double up = loss();
            x[i] = keep - step;
            const double down = loss();
            x[i] = keep;
            worst = std::max(worst, std::abs((up - down) / (2 * step) - grad[i]));
        }
        return worst;
    }
};

void check_slopes(AttentionArgs<double> a, std::uint64_t seed) {
    problem p(a, seed);
    p.loss();
    p.backward();
    CHECK(p.worst_slope_error(p.q, p.grad_q) < 1e-8);
    CHECK(p.worst_slope_error(p.k, p.grad_k) < 1e-8);
    CHECK(p.worst_slope_error(p.v, p.grad_v) < 1e-8);
}

AttentionArgs<double> sizes(int batch, int heads, int kv_heads, int dim, int tq, int tk) {
    AttentionArgs<double> a;
    a.batch = batch, a.heads = heads, a.kv_heads = kv_heads, a.head_dim = dim;
    a.queries.capacity = tq, a.keys.capacity = tk;
    a.scale = .37;
    return a;
}

}  // namespace

TEST_CASE("attention gradients agree with finite differences", "[attention]") {
    SECTION("causal, grouped heads") { check_slopes(sizes(2, 4, 2, 5, 7, 7), 1); }
    SECTION("full, more keys than queries") {
        auto a = sizes(1, 3, 1, 9, 4, 6);
        a.causal = false;
        check_slopes(a, 2);
    }
    SECTION("causal, more keys than queries, window") {
        auto a = sizes(1, 2, 2, 8, 5, 9);
        a.window = 3;
        check_slopes(a, 3);
    }
    SECTION("ranges with an empty row, live rows") {
        auto a = sizes(2, 2, 1, 4, 5, 6);
        const std::vector<int> first{0, 2, 4, 1, 3, 0, 0, 0, 0, 0}, last{3, 4, 3, 1, 9, 0, 1, 2, 3, 4};
        const std::vector<int> live_q{4, 5}, live_k{6, 3};
        a.first = first.data(), a.last = last.data(), a.queries.live = live_q.data(), a.keys.live = live_k.data();
        check_slopes(a, 4);
    }
}

TEST_CASE("equal logits average the visible values", "[attention]") {
    auto a = sizes(1, 1, 1, 1, 3, 3);
    problem p(a, 5);
    p.q.assign(3, 0.), p.v = {3, 5, 10}, p.args.q = p.q.data(), p.args.v = p.v.data();
    p.loss();
    CHECK(p.o == std::vector<double>{3, 4, 6});
    CHECK(std::abs(p.lse[2] - std::log(3.)) < 1e-15);
}

TEST_CASE("rows that see nothing and dead rows are zero", "[attention]") {
    auto a = sizes(1, 2, 1, 3, 4, 4);
    const int live = 2;
    a.queries.live = a.keys.live = &live;
    problem p(a, 6);
    p.loss();
    p.backward();
    for (std::size_t i = 2 * 6; i < 4 * 6; ++i) CHECK((p.o[i] == 0 && p.grad_q[i] == 0));
    for (std::size_t i = 2 * 3; i < 4 * 3; ++i) CHECK((p.grad_k[i] == 0 && p.grad_v[i] == 0));
    CHECK(p.lse[4] == -std::numeric_limits<double>::infinity());

    const int none = 0;
    p.args.queries.live = p.args.keys.live = &none;
    CHECK(p.loss() == 0);
    p.backward();
    for (const double x : p.grad_k) CHECK(x == 0);
}

TEST_CASE("documents are isolated", "[attention]") {
    auto a = sizes(1, 1, 1, 4, 6, 6);
    const std::vector<int> first{0, 0, 0, 3, 3, 3}, last{0, 1, 2, 3, 4, 5};
    a.first = first.data(), a.last = last.data();
    problem p(a, 7);
    p.loss();
    const std::vector<double> before = p.o;
    for (int i = 0; i < 12; ++i) p.k[static_cast<std::size_t>(i)] += 1, p.v[static_cast<std::size_t>(i)] -= 2;
    p.loss();
    for (std::size_t i = 0; i < 24; ++i) CHECK((p.o[i] == before[i]) == (i >= 12));
}

TEST_CASE("a row stride changes nothing but the place", "[attention]") {
    auto a = sizes(1, 2, 1, 3, 5, 5);
    problem packed(a, 8);
    a.q_row = 10, a.kv_row = 7;
    problem wide(a, 9);
    for (int i = 0; i < 5; ++i) {
        for (int c = 0; c < 6; ++c)
            wide.q[static_cast<std::size_t>(10 * i + c)] = packed.q[static_cast<std::size_t>(6 * i + c)];
        for (int c = 0; c < 3; ++c) {
            wide.k[static_cast<std::size_t>(7 * i + c)] = packed.k[static_cast<std::size_t>(3 * i + c)];
            wide.v[static_cast<std::size_t>(7 * i + c)] = packed.v[static_cast<std::size_t>(3 * i + c)];
        }
    }
    packed.loss();
    wide.loss();
    CHECK(packed.o == wide.o);
}

TEST_CASE("sizes that do not fit are refused", "[attention]") {
    problem p(sizes(1, 2, 2, 4, 2, 2), 10);
    p.args.kv_heads = 3;
    CHECK_THROWS_AS(sdepth::on_host::attention_forward(p.args), sdepth::error);
    p.args.kv_heads = 2, p.args.causal = false, p.args.window = 2;
    CHECK_THROWS_AS(sdepth::on_host::attention_forward(p.args), sdepth::error);
}
