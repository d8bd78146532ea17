// SPDX-License-Identifier: MIT
// Sparse-depth routing of the host backend: selection by hand-made cases, slopes of everything that has one.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/host_operations.hpp"
#include "support/samples.hpp"
#include "support/tolerance.hpp"

namespace {

using namespace sdepth_test;
using sdepth::gate_form;
using sdepth::selection_rule;
template <class T>
using precision_of = sdepth::uniform_precision<T>;

// A selection with its buffers.
struct selection {
    sdepth::SelectArgs<precision_of<double>> args;
    std::vector<double> logits, bias, u;
    std::vector<int> ids, live;
    double cut = 0, cut_sum = 0;
    long long cut_groups = 0;

    selection(std::vector<double> s, sdepth::batch_rows rows, int capacity, long long sparsity)
        : logits(std::move(s)), bias(logits.size()), u(poison<double>(static_cast<long long>(logits.size()))) {
        ids.assign(static_cast<std::size_t>(rows.batch * capacity), -1),
            live.assign(static_cast<std::size_t>(rows.batch), -1);
        args = {.rows = rows, .capacity = capacity, .sparsity = sparsity};
        args.logits = logits.data(), args.bias = bias.data(), args.cut = &cut, args.u = u.data();
        args.ids = ids.data(), args.live = live.data(), args.cut_sum = &cut_sum, args.cut_groups = &cut_groups;
    }
    // Runs it and gives the chosen rows of sequence b.
    std::vector<int> chosen(int b = 0) {
        sdepth::host<double>(2).select(args);
        const auto first = ids.begin() + std::ptrdiff_t{b} * args.capacity;
        return {first, first + live[static_cast<std::size_t>(b)]};
    }
};

using list = std::vector<int>;

}  // namespace

TEST_CASE("top selection: the largest, ties to the lower position, ids rise", "[route]") {
    selection s({1, 5, 3, 5, 5, 0, 2}, {1, {7, nullptr}}, 3, 3);
    CHECK(s.chosen() == list{1, 3, 4});  // ceil(7 / 3) = 3
    CHECK((s.cut_groups == 1 && s.cut_sum == 4));
    s.args.sparsity = 4;
    CHECK(s.chosen() == list{1, 3});
    CHECK((s.cut_groups == 2 && s.cut_sum == 4 + 5));  // ties: the midpoint is the tied value
    s.args.sparsity = 100;
    CHECK(s.chosen() == list{1});
    CHECK(selection({2, 2, 2, 2}, {1, {4, nullptr}}, 2, 2).chosen() == list{0, 1});
}

TEST_CASE("selection sees the bias, and u the cut", "[route]") {
    selection s({1, 5, 3, 4}, {1, {4, nullptr}}, 4, 2);
    s.bias = {0, 4, 0, 0}, s.args.bias = s.bias.data(), s.args.tau = .5, s.cut = 1;
    CHECK(s.chosen() == list{1, 3});  // v = 1, 3, 3, 4: the tie of rows 1 and 2 goes to row 1
    CHECK(s.u == std::vector<double>{0, 2, 2, 3});
    CHECK(s.cut_sum == 3);
    s.args.tau = 1;
    CHECK(s.chosen() == list{2, 3});  // v = 1, 1, 3, 4
    s.args.biased = false;
    CHECK(s.chosen() == list{1, 3});
    CHECK(s.u == std::vector<double>{0, 4, 2, 3});
    s.args.cut = nullptr;
    s.chosen();
    CHECK(s.u == std::vector<double>{1, 5, 3, 4});
}

TEST_CASE("threshold selection takes u >= 0 and leaves the cut alone", "[route]") {
    selection s({1, -1, .5, .49, .51}, {1, {5, nullptr}}, 5, 3);
    s.args.rule = selection_rule::threshold, s.cut = .5;
    CHECK(s.chosen() == list{0, 2, 4});
    CHECK((s.cut_sum == 0 && s.cut_groups == 0));
    s.cut = 9;
    CHECK(s.chosen().empty());
}

TEST_CASE("only live rows are chosen; empty sequences; K = 1", "[route]") {
    const double nan = std::numeric_limits<double>::quiet_NaN();
    const std::vector<int> counts{2, 0, 4};
    const std::vector<double> logits{1, 2, nan, nan, nan, nan, nan, nan, -5, 3, 1, 2};
    for (const selection_rule rule : {selection_rule::top, selection_rule::threshold}) {
        selection all(logits, {3, {4, counts.data()}}, 4, 1);
        all.args.rule = rule;
        CHECK((all.chosen(0) == list{0, 1} && all.chosen(1).empty() && all.chosen(2) == list{0, 1, 2, 3}));
        CHECK(all.cut_groups == 0);
        CHECK(dead_alone_are_nan(all.u, all.args.rows, 1));
    }
    selection half(logits, {3, {4, counts.data()}}, 2, 2);
    CHECK(half.chosen(0) == list{1});
    CHECK((half.chosen(1).empty() && half.chosen(2) == list{1, 3}));
    CHECK((half.cut_groups == 3 * 2 && half.cut_sum == 3 * (1.5 + 1.5)));
}

TEST_CASE("documents are groups", "[route]") {
    selection s({9, 8, 7, 0, 1, 2, -3}, {1, {7, nullptr}}, 5, 2);
    const std::vector<int> documents{0, 0, 0, 2, 2, 2, 5};
    s.args.documents = documents.data();
    CHECK(s.chosen() == list{0, 1, 4, 5, 6});  // 2 of 3, 2 of 3, 1 of 1
    CHECK((s.cut_groups == 2 && s.cut_sum == 7.5 + .5));
    s.args.capacity = 4;
    CHECK_THROWS_AS(s.chosen(), sdepth::error);
}

TEST_CASE("selection agrees with sorting", "[route]") {
    for (const long long k : {2, 3, 8, 16})
        for (const int n : {1, 2, 7, 64, 65, 1000}) {
            std::vector<double> v = samples<double>(n, static_cast<std::uint64_t>(n));
            for (double& e : v) e = std::round(4 * e);  // many ties
            list want(static_cast<std::size_t>(n));
            for (int i = 0; i < n; ++i) want[static_cast<std::size_t>(i)] = i;
            std::stable_sort(want.begin(), want.end(), [&](int i, int j) {
                return v[static_cast<std::size_t>(i)] > v[static_cast<std::size_t>(j)];
            });
            const int count = static_cast<int>((n + k - 1) / k);
            want.resize(static_cast<std::size_t>(count));
            std::sort(want.begin(), want.end());
            selection s(v, {1, {n, nullptr}}, count, k);
            CHECK(s.chosen() == want);
        }
}

TEST_CASE("a logit that is not finite is refused", "[route]") {
    for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
        selection s({1, 2, bad, 4}, {2, {2, nullptr}}, 1, 2);
        try {
            s.chosen();
            FAIL("no error");
        } catch (const sdepth::error& e) {
            CHECK(std::string(e.what()).find("row 0 of sequence 1 is not finite") != std::string::npos);
        }
    }
}

TEST_CASE("visible keys of chosen rows: causal, documents, windows", "[route]") {
    const int L = 8;
    const std::vector<int> documents{0, 0, 0, 1, 1, 1, 1, 4, 0, 0, 0, 0, 0, 0, 0, 0};
    const std::vector<int> ids{1, 2, 4, 6, 7, -1, 0, 3, 5, 6, 7, -1}, live{5, 5};
    sdepth::host<double> host(2);
    for (const bool full : {false, true})
        for (const int window : {0, 1, 3})
            for (const int* document : {static_cast<const int*>(nullptr), documents.data()}) {
                list first(12, 99), last(12, 99);
                sdepth::VisibilityArgs args{{2, {6, live.data()}}, {2, {full ? L : 6, full ? nullptr : live.data()}}};
                args.full_keys = full, args.window = window, args.ids = ids.data(), args.documents = document;
                args.sequence = L, args.first = first.data(), args.last = last.data();
                host.visibility(args);
                for (int b = 0; b < 2; ++b)
                    for (int i = 0; i < 6; ++i) {
                        const std::size_t row = static_cast<std::size_t>(6 * b + i);
                        if (i >= 5) {
                            CHECK(last[row] < first[row]);
                            continue;
                        }
                        for (int j = 0; j < (full ? L : 5); ++j) {
                            const int at = full ? j : ids[static_cast<std::size_t>(6 * b + j)], me = ids[row];
                            const auto document_of = [&](int p) {
                                return document == nullptr ? 0 : document[L * b + p];
                            };
                            const bool sees =
                                at <= me && (window == 0 || me - at < window) && document_of(at) == document_of(me);
                            CHECK((j >= first[row] && j <= last[row]) == sees);
                        }
                    }
            }
}

namespace {

template <class T>
struct residual_problem {
    sdepth::ScatterResidualArgs<precision_of<T>> args;
    sdepth::ScatterResidualBackwardArgs<precision_of<T>> back;
    std::vector<T> gates, scale, a, f, x, bias, grad_x, grad_a, grad_f, grad_gates, grad_scale;

    residual_problem(sdepth::batch_rows rows, int sequence, int width, gate_form gate, const int* ids) {
        const long long n = rows.capacity() * width, all = static_cast<long long>(rows.batch) * sequence;
        gates = samples<T>(all, 1), scale = {T(1.5)}, a = samples<T>(n, 2), f = samples<T>(n, 3);
        poison_dead(a, rows, width), poison_dead(f, rows, width);
        x = samples<T>(all * width, 4), bias = samples<T>(all, 5), grad_x = samples<T>(all * width, 6);
        grad_a = grad_f = poison<T>(n), grad_gates = samples<T>(all, 7), grad_scale = {T(.25)};
        args = {rows,         sequence,     width,    gate,     2,        ids,
                gates.data(), scale.data(), a.data(), f.data(), x.data(), bias.data()};
        if (gate == gate_form::ffn) args.scale = nullptr;
        if (gate == gate_form::none) args.gate_logits = nullptr;
        back = {.forward = args,
                .grad_x = grad_x.data(),
                .grad_a = grad_a.data(),
                .grad_f = grad_f.data(),
                .grad_logits = grad_gates.data(),
                .grad_scale = grad_scale.data()};
        if (gate == gate_form::ffn) back.grad_scale = nullptr;
        if (gate == gate_form::none) back.grad_logits = nullptr;
    }
};

}  // namespace

TEST_CASE("gated residual: three forms, slopes, untouched rows", "[route]") {
    const std::vector<int> live{2, 0, 3}, ids{1, 4, -9, -9, -9, -9, 0, 2, 3};
    const sdepth::batch_rows rows{3, {3, live.data()}};
    sdepth::host<double> host(2);
    for (const gate_form gate : {gate_form::layer, gate_form::ffn, gate_form::none})
        for (const int branches : {1, 2, 3}) {  // bit 0: a, bit 1: f
            residual_problem<double> p(rows, 5, 4, gate, ids.data());
            if ((branches & 1) == 0) p.args.a = nullptr;
            if ((branches & 2) == 0) p.args.f = nullptr;
            p.back.forward = p.args;
            std::vector<double> want = p.x, want_bias = p.bias;
            const std::vector<double> x0 = p.x, gates0 = p.grad_gates;
            for (std::size_t row = 0; row < 9; ++row) {
                if (ids[row] < 0) continue;
                const std::size_t at = row / 3 * 5 + static_cast<std::size_t>(ids[row]);
                want_bias[at] += 2;
                const double r = 1 / (1 + std::exp(-p.gates[at]));
                for (std::size_t c = 0; c < 4; ++c) {
                    const double a = (branches & 1) != 0 ? p.a[row * 4 + c] : 0;
                    const double f = (branches & 2) != 0 ? p.f[row * 4 + c] : 0;
                    want[at * 4 + c] += gate == gate_form::layer ? 1.5 * r * (a + f)
                                        : gate == gate_form::ffn ? a + r * f
                                                                 : 1.5 * (a + f);
                }
            }
            host.scatter_residual(p.args);
            CHECK(distance(p.x, want) <= tolerance<double>(1, 8));
            CHECK(p.bias == want_bias);
            for (std::size_t i = 0; i < 20; ++i) CHECK(p.x[i] == (i / 4 == 1 || i / 4 == 4 ? p.x[i] : x0[i]));

            host.scatter_residual_backward(p.back);
            p.args.bias = nullptr;
            const auto loss = [&] {
                p.x = x0;
                host.scatter_residual(p.args);
                return inner(p.x, p.grad_x);
            };
            if ((branches & 1) != 0) {
                CHECK(dead_alone_are_nan(p.grad_a, rows, 4));
                CHECK(gradient_defect(loss, p.a, p.grad_a) <= 1e-6);
            }
            if ((branches & 2) != 0) {
                CHECK(dead_alone_are_nan(p.grad_f, rows, 4));
                CHECK(gradient_defect(loss, p.f, p.grad_f) <= 1e-6);
            }
            std::vector<double> to_gates = p.grad_gates, to_scale{p.grad_scale[0] - .25};
            for (std::size_t i = 0; i < to_gates.size(); ++i) to_gates[i] -= gates0[i];
            if (gate == gate_form::none || (gate == gate_form::ffn && branches == 1))
                CHECK(p.grad_gates == gates0);
            else
                CHECK(gradient_defect(loss, p.gates, to_gates) <= 1e-6);
            if (gate == gate_form::ffn)
                CHECK(p.grad_scale[0] == .25);
            else
                CHECK(gradient_defect(loss, p.scale, to_scale) <= 1e-6);
        }
}

namespace {

template <class T>
struct router_problem {
    sdepth::RouteLogitsArgs<precision_of<T>> args;
    sdepth::RouteLogitsBackwardArgs<precision_of<T>> back;
    std::vector<T> x, w, logits, grad_logits, grad_x_logits, grad_w, grad_x;

    router_problem(sdepth::batch_rows rows, int width) {
        const long long n = rows.capacity();
        x = samples<T>(n * width, 1), w = samples<T>(width, 2), logits = poison<T>(n);
        grad_logits = samples<T>(n, 3), grad_x_logits = samples<T>(n, 4);
        grad_w = samples<T>(width, 5), grad_x = samples<T>(n * width, 6);
        poison_dead(x, rows, width), poison_dead(grad_x, rows, width);
        poison_dead(grad_logits, rows, 1), poison_dead(grad_x_logits, rows, 1);
        args = {rows, width, x.data(), w.data(), logits.data()};
        back = {args, grad_logits.data(), grad_x_logits.data(), grad_w.data(), grad_x.data()};
    }
};

}  // namespace

TEST_CASE("routers' gradients gathered by version of a row are those of each router for itself", "[route]") {
    constexpr int layers = 5, width = 6, length = 9, stride = 8;
    const std::vector<int> live{9, 0, 7};
    const sdepth::batch_rows rows{3, {length, live.data()}};
    constexpr long long all = 3 * length;
    const auto at = [](int i) { return static_cast<std::size_t>(i); };
    sdepth::host<double> host(2);
    const std::vector<double> w = samples<double>(layers * stride, 1), g = samples<double>(layers * all, 2);
    std::vector<std::vector<double>> x(layers + 1,
                                       samples<double>(all * width, 3));  // before each layer, and at the end
    std::vector<std::vector<int>> ids(layers, std::vector<int>(3 * 3, 0));
    const std::vector<int> chosen{3, 0, 2};
    for (int l = 0; l < layers; ++l) {
        x[at(l + 1)] = x[at(l)];
        for (int b = 0; b < 3; ++b)
            for (int j = 0; j < chosen[at(b)]; ++j) {
                const int row = ids[at(l)][at(3 * b + j)] = (2 * l + 1) % 3 + 2 * j;
                for (int c = 0; c < width; ++c) x[at(l + 1)][at((b * length + row) * width + c)] += l + 1;
            }
    }
    std::vector<double> want_x = samples<double>(all * width, 4), want_w = samples<double>(layers * stride, 5);
    std::vector<double> got_x = want_x, got_w = want_w, sums(layers * width, 0);
    std::vector<int> later(all, 0);
    for (int l = 0; l < layers; ++l)
        host.route_logits_backward({{rows, width, x[at(l)].data(), w.data() + l * stride, nullptr},
                                    g.data() + l * all,
                                    g.data() + l * all,
                                    want_w.data() + l * stride,
                                    want_x.data()});
    for (int l = layers; l >= 0; --l) {
        const bool end = l == 0;
        host.route_version_backward({.rows = end ? rows : sdepth::batch_rows{3, {3, chosen.data()}},
                                     .sequence = length,
                                     .width = width,
                                     .layers = layers,
                                     .first = l,
                                     .ids = end ? nullptr : ids[at(l - 1)].data(),
                                     .x = x[at(l)].data(),
                                     .weight = w.data(),
                                     .stride = stride,
                                     .grad_logits = g.data(),
                                     .later = later.data(),
                                     .grad_x = got_x.data(),
                                     .sums = sums.data(),
                                     .grad_weight = got_w.data(),
                                     .grad_stride = stride});
    }
    CHECK(distance(got_x, want_x) <= 1e-12);
    CHECK(distance(got_w, want_w) <= 1e-12);
}

TEST_CASE("route_logits: slopes, one for w and one for x", "[route]") {
    const std::vector<int> live{3, 0, 4};
    const sdepth::batch_rows rows{3, {4, live.data()}};
    sdepth::host<double> host(2);
    router_problem<double> p(rows, 18);
    const std::vector<double> w0 = p.grad_w, x0 = p.grad_x;
    host.route_logits(p.args);
    CHECK(dead_alone_are_nan(p.logits, rows, 1));
    host.route_logits_backward(p.back);
    CHECK(dead_alone_are_nan(p.grad_x, rows, 18));
    std::vector<double> to_w = p.grad_w, to_x = p.grad_x;
    for (std::size_t i = 0; i < w0.size(); ++i) to_w[i] -= w0[i];
    for (std::size_t i = 0; i < x0.size(); ++i) to_x[i] -= x0[i];
    const auto through = [&](const std::vector<double>& grad) {
        return [&] {
            host.route_logits(p.args);
            return inner(p.logits, grad);
        };
    };
    CHECK(gradient_defect(through(p.grad_logits), p.w, to_w) <= 1e-6);
    CHECK(gradient_defect(through(p.grad_x_logits), p.x, to_x) <= 1e-6);

    router_problem<double> detached(rows, 18);
    detached.back.grad_x = nullptr;
    host.route_logits_backward(detached.back);
    CHECK((detached.grad_w == p.grad_w && same_bits(detached.grad_x, x0)));
}

TEST_CASE("route_loss: value and slope of the cross-entropy with membership", "[route]") {
    const std::vector<int> live{4, 0, 3}, taken{2, 0, 1}, ids{1, 3, -9, -9, 0, -9};
    const sdepth::batch_rows rows{3, {4, live.data()}}, chosen{3, {2, taken.data()}};
    sdepth::host<double> host(2);
    std::vector<double> logits = samples<double>(12, 1), grad = poison<double>(12);
    for (double& x : logits) x *= 3;
    poison_dead(logits, rows, 1);
    double sum = .5;
    const sdepth::RouteLossArgs<precision_of<double>> args{rows,       chosen, .3,         logits.data(),
                                                           ids.data(), &sum,   grad.data()};
    host.route_loss(args);
    double want = .5;
    for (const std::size_t i : {0u, 1u, 2u, 3u, 8u, 9u, 10u}) {
        const double p = 1 / (1 + std::exp(-logits[i]));
        want -= i == 1 || i == 3 || i == 8 ? std::log(p) : std::log(1 - p);
    }
    CHECK(sum == Approx(want).epsilon(1e-13));
    CHECK(dead_alone_are_nan(grad, rows, 1));
    sdepth::RouteLossArgs<precision_of<double>> value = args;
    value.grad_logits = nullptr;
    const auto loss = [&] {
        sum = 0;
        host.route_loss(value);
        return .3 * sum;
    };
    CHECK(gradient_defect(loss, logits, grad) <= 1e-6);
    logits[0] = -1e4, logits[1] = -1e4;
    CHECK(std::isfinite(loss()));
    CHECK(sum > 1e4);
}

TEST_CASE("the tracked cut follows the mean midpoint", "[route]") {
    sdepth::host<double> host(1);
    const std::vector<double> sums{6, 0, -2};
    const std::vector<long long> groups{3, 0, 1};
    std::vector<double> cut{1, 9, 7, 9, 0, 9};
    host.track_cut({3, 2, .25, sums.data(), groups.data(), cut.data()});
    CHECK(cut == std::vector<double>{1.25, 9, 7, 9, -.5, 9});
}

TEST_CASE("routing: float agrees with double and with itself", "[route]") {
    const int L = 200, width = 70;
    const std::vector<int> live{50, 0, 31};
    list ids(150, -1);
    for (int i = 0; i < 150; ++i) ids[static_cast<std::size_t>(i)] = i % 50 * 4 + 1;
    const sdepth::batch_rows rows{3, {50, live.data()}};
    sdepth::host<double> oracle(1);
    sdepth::host<float> one(1), three(3);

    router_problem<double> want(rows, width);
    router_problem<float> got(rows, width), again(rows, width);
    oracle.route_logits(want.args), one.route_logits(got.args), three.route_logits(again.args);
    oracle.route_logits_backward(want.back), one.route_logits_backward(got.back),
        three.route_logits_backward(again.back);
    CHECK(distance(got.logits, want.logits) <= tolerance<float>(width, 1));
    CHECK(distance(got.grad_w, want.grad_w) <= tolerance<float>(81, 1));
    CHECK(distance(got.grad_x, want.grad_x) <= tolerance<float>(1, 2));
    CHECK((same_bits(got.grad_w, again.grad_w) && same_bits(got.logits, again.logits)));

    residual_problem<double> exact(rows, L, width, gate_form::layer, ids.data());
    residual_problem<float> rounded(rows, L, width, gate_form::layer, ids.data());
    residual_problem<float> repeated(rows, L, width, gate_form::layer, ids.data());
    oracle.scatter_residual(exact.args), one.scatter_residual(rounded.args), three.scatter_residual(repeated.args);
    oracle.scatter_residual_backward(exact.back), one.scatter_residual_backward(rounded.back);
    three.scatter_residual_backward(repeated.back);
    CHECK(distance(rounded.x, exact.x) <= tolerance<float>(1, 8));
    CHECK(distance(rounded.grad_a, exact.grad_a) <= tolerance<float>(1, 6));
    CHECK(distance(rounded.grad_gates, exact.grad_gates) <= tolerance<float>(width, 8));
    CHECK(distance(rounded.grad_scale, exact.grad_scale) <= tolerance<float>(width * 81, 8));
    CHECK((same_bits(rounded.x, repeated.x) && same_bits(rounded.grad_gates, repeated.grad_gates)));
    CHECK(same_bits(rounded.grad_scale, repeated.grad_scale));
}
