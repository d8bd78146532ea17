// SPDX-License-Identifier: MIT
// The selective scan of Mamba on the host backend.
#include "host/recurrent.hpp"

namespace {

using namespace sdepth_test;

template <int Channels, int States>
struct scan {
    template <class T>
    using args = sdepth::SelectiveScanArgs<sdepth::uniform_precision<T>>;

    static std::vector<field> fields() {
        return {{Channels}, {Channels}, {2 * States}, {Channels * States, true, 0, 0.5}, {Channels, true, 1}};
    }
    static int outputs() { return Channels; }
    static int state() { return Channels * States; }
    template <class T>
    static args<T> bind(data<T>& d, long long begin) {
        return {.rows = d.rows,
                .channels = Channels,
                .states = States,
                .chunk = d.chunk,
                .first = d.first,
                .x = d.in[0].data() + begin * Channels,
                .dt = d.in[1].data() + begin * Channels,
                .bc = d.in[2].data() + begin * 2 * States,
                .a_log = d.in[3].data(),
                .skip = d.in[4].data(),
                .state = d.state_of_call(),
                .y = d.y.data() + begin * Channels};
    }
    static void parallel(auto& host, const auto& a) { host.selective_scan(a); }
    static void step(auto& host, const auto& a) { host.selective_scan_step(a); }
    template <class T>
    static void backward(auto& host, const args<T>& a, data<T>& d) {
        host.selective_scan_backward({.forward = a,
                                      .grad_y = d.grad_y.data(),
                                      .grad_x = d.grad[0].data(),
                                      .grad_dt = d.grad[1].data(),
                                      .grad_bc = d.grad[2].data(),
                                      .grad_a_log = d.grad[3].data(),
                                      .grad_skip = d.grad[4].data()});
    }
};

}  // namespace

TEMPLATE_TEST_CASE("selective scan: forms, segments, documents, slopes, threads", "[recurrent]", (scan<5, 3>),
                   (scan<37, 2>), (scan<1, 1>)) {
    forms_agree<TestType>();
    segments_join<TestType>();
    documents_stand_alone<TestType>();
    slopes_agree<TestType>();
    float_is_near_and_threads_do_not_show<TestType>(37 * 2, 20);
}

TEST_CASE("selective scan: maps compose associatively", "[recurrent]") {
    using map = sdepth::on_host::detail::affine<double>;
    const std::vector<double> x = samples<double>(300, 7);
    for (std::size_t i = 0; i + 6 < x.size(); i += 6) {
        const map a{x[i], x[i + 1]}, b{x[i + 2], x[i + 3]}, c{x[i + 4], x[i + 5]};
        const map left = a.then(b).then(c), right = a.then(b.then(c));
        CHECK(std::abs(left.scale - right.scale) <= 1e-14 * (1 + std::abs(left.scale)));
        CHECK(std::abs(left.shift - right.shift) <=
              1e-14 * (1 + std::abs(a.shift * b.scale * c.scale) + std::abs(b.shift * c.scale) + std::abs(c.shift)));
        CHECK(std::abs(a.then(b)(0.5) - b(a(0.5))) <= 1e-14 * (1 + std::abs(b(a(0.5)))));
    }
}

TEST_CASE("selective scan: written out; extreme steps stay finite", "[recurrent]") {
    using mixer = scan<1, 2>;
    sdepth::host<double> host(1);
    auto d = data<double>::of<mixer>({1, {6, nullptr}}, nullptr, true);
    std::vector<double> h = d.state, want;
    for (std::size_t i = 0; i < 6; ++i) {
        const double step = std::log1p(std::exp(d.in[1][i]));
        CHECK(step > 0);
        double y = d.in[4][0] * d.in[0][i];
        for (std::size_t n = 0; n < 2; ++n) {
            h[n] = std::exp(-std::exp(d.in[3][n]) * step) * h[n] + step * d.in[2][4 * i + n] * d.in[0][i];
            y += d.in[2][4 * i + 2 + n] * h[n];
        }
        want.push_back(y);
    }
    mixer::parallel(host, mixer::bind<double>(d, 0));
    CHECK(distance(d.y, want) <= forms_gate);
    CHECK(distance(d.state, h) <= forms_gate);

    for (std::size_t i = 0; i < 6; ++i) d.in[1][i] = i % 2 == 0 ? 1e6 : -800;
    auto e = d;
    mixer::parallel(host, mixer::bind<double>(d, 0));
    mixer::step(host, mixer::bind<double>(e, 0));
    CHECK(distance(d.y, e.y) <= forms_gate);
    d.state.clear();
    mixer::backward(host, mixer::bind<double>(d, 0), d);
    for (const auto& grad : d.grad)
        CHECK(std::all_of(grad.begin(), grad.end(), [](double g) { return std::isfinite(g); }));
}
