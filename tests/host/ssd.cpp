// SPDX-License-Identifier: MIT
// State-space duality (Mamba-2) on the host backend.
#include "host/recurrent.hpp"

namespace {

using namespace sdepth_test;

template <int Heads, int Width, int Groups, int States>
struct ssd {
    template <class T>
    using args = sdepth::SsdArgs<sdepth::uniform_precision<T>>;
    static constexpr int row = Heads * Width + 2 * Groups * States;

    static std::vector<field> fields() {
        return {{row}, {Heads}, {Heads, true}, {Heads, true, 0, 0.5}, {Heads, true, 1}};
    }
    static int outputs() { return Heads * Width; }
    static int state() { return Heads * Width * States; }
    template <class T>
    static args<T> bind(data<T>& d, long long begin) {
        return {.rows = d.rows,
                .heads = Heads,
                .head_dim = Width,
                .groups = Groups,
                .states = States,
                .chunk = d.chunk,
                .first = d.first,
                .xbc = d.in[0].data() + begin * row,
                .dt = d.in[1].data() + begin * Heads,
                .dt_bias = d.in[2].data(),
                .a_log = d.in[3].data(),
                .skip = d.in[4].data(),
                .state = d.state_of_call(),
                .y = d.y.data() + begin * Heads * Width};
    }
    static void parallel(auto& host, const auto& a) { host.ssd(a); }
    static void step(auto& host, const auto& a) { host.ssd_step(a); }
    template <class T>
    static void backward(auto& host, const args<T>& a, data<T>& d) {
        host.ssd_backward({.forward = a,
                           .grad_y = d.grad_y.data(),
                           .grad_xbc = d.grad[0].data(),
                           .grad_dt = d.grad[1].data(),
                           .grad_dt_bias = d.grad[2].data(),
                           .grad_a_log = d.grad[3].data(),
                           .grad_skip = d.grad[4].data()});
    }
};

}  // namespace

TEMPLATE_TEST_CASE("state-space duality: forms, segments, documents, slopes, threads", "[recurrent]", (ssd<4, 3, 2, 5>),
                   (ssd<3, 4, 1, 2>), (ssd<1, 1, 1, 1>)) {
    forms_agree<TestType>();
    segments_join<TestType>();
    documents_stand_alone<TestType>();
    slopes_agree<TestType>();
    float_is_near_and_threads_do_not_show<TestType>(11 * 5, 20);
}

TEST_CASE("state-space duality: one channel written out; extreme steps stay finite", "[recurrent]") {
    using mixer = ssd<1, 1, 1, 1>;
    sdepth::host<double> host(1);
    auto d = data<double>::of<mixer>({1, {6, nullptr}}, nullptr, true);
    double h = d.state[0];
    std::vector<double> want;
    for (std::size_t i = 0; i < 6; ++i) {
        const double step = std::log1p(std::exp(d.in[1][i] + d.in[2][0]));
        h = std::exp(-std::exp(d.in[3][0]) * step) * h + step * d.in[0][3 * i + 1] * d.in[0][3 * i];
        want.push_back(d.in[0][3 * i + 2] * h + d.in[4][0] * d.in[0][3 * i]);
    }
    mixer::parallel(host, mixer::bind<double>(d, 0));
    CHECK(distance(d.y, want) <= forms_gate);
    CHECK(std::abs(d.state[0] - h) <= forms_gate * std::abs(h));

    // Decays of exp(-1e6) after decays of nearly 1, where differences of running sums would lose the small ones.
    for (std::size_t i = 0; i < 6; ++i) d.in[1][i] = i % 2 == 0 ? 1e6 : -20;
    auto e = d;
    mixer::parallel(host, mixer::bind<double>(d, 0));
    mixer::step(host, mixer::bind<double>(e, 0));
    CHECK(distance(d.y, e.y) <= forms_gate);
    d.state.clear();
    mixer::backward(host, mixer::bind<double>(d, 0), d);
    for (const auto& grad : d.grad)
        CHECK(std::all_of(grad.begin(), grad.end(), [](double g) { return std::isfinite(g); }));
}
