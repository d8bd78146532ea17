// SPDX-License-Identifier: MIT
// The gated delta rule on the host backend.
#include "host/recurrent.hpp"

namespace {

using namespace sdepth_test;

template <int Heads, int ValueHeads, int Keys, int Values>
struct gated_delta {
    template <class T>
    using args = sdepth::GatedDeltaArgs<sdepth::uniform_precision<T>>;

    static std::vector<field> fields() {
        return {{Heads * Keys},
                {Heads * Keys},
                {ValueHeads * Values},
                {ValueHeads},
                {ValueHeads, false, 0, 2},
                {ValueHeads, true},
                {ValueHeads, true, -1, 0.5}};
    }
    static int outputs() { return ValueHeads * Values; }
    static int state() { return ValueHeads * Keys * Values; }
    template <class T>
    static args<T> bind(data<T>& d, long long begin) {
        return {.rows = d.rows,
                .heads = Heads,
                .value_heads = ValueHeads,
                .key_dim = Keys,
                .value_dim = Values,
                .chunk = d.chunk,
                .first = d.first,
                .q = d.in[0].data() + begin * Heads * Keys,
                .k = d.in[1].data() + begin * Heads * Keys,
                .v = d.in[2].data() + begin * ValueHeads * Values,
                .decay = d.in[3].data() + begin * ValueHeads,
                .strength = d.in[4].data() + begin * ValueHeads,
                .dt_bias = d.in[5].data(),
                .a_log = d.in[6].data(),
                .state = d.state_of_call(),
                .y = d.y.data() + begin * ValueHeads * Values};
    }
    static void parallel(auto& host, const auto& a) { host.gated_delta(a); }
    static void step(auto& host, const auto& a) { host.gated_delta_step(a); }
    template <class T>
    static void backward(auto& host, const args<T>& a, data<T>& d) {
        host.gated_delta_backward({.forward = a,
                                   .grad_y = d.grad_y.data(),
                                   .grad_q = d.grad[0].data(),
                                   .grad_k = d.grad[1].data(),
                                   .grad_v = d.grad[2].data(),
                                   .grad_decay = d.grad[3].data(),
                                   .grad_strength = d.grad[4].data(),
                                   .grad_dt_bias = d.grad[5].data(),
                                   .grad_a_log = d.grad[6].data()});
    }
};

}  // namespace

TEMPLATE_TEST_CASE("gated delta rule: forms, segments, documents, slopes, threads", "[recurrent]",
                   (gated_delta<2, 2, 4, 3>), (gated_delta<2, 4, 3, 5>), (gated_delta<1, 3, 2, 1>)) {
    forms_agree<TestType>();
    segments_join<TestType>();
    documents_stand_alone<TestType>();
    slopes_agree<TestType>();
    float_is_near_and_threads_do_not_show<TestType>(11 * 5, 20);
}

TEST_CASE("gated delta rule: equation 10 written out with S as printed", "[recurrent]") {
    using mixer = gated_delta<1, 1, 2, 2>;
    sdepth::host<double> host(1);
    constexpr std::size_t n = 5;
    auto d = data<double>::of<mixer>({1, {n, nullptr}}, nullptr, false);
    mixer::parallel(host, mixer::bind<double>(d, 0));
    double s[2][2] = {};
    std::vector<double> want;
    for (std::size_t i = 0; i < n; ++i) {
        double q[2], k[2];
        const auto length = [&](const std::vector<double>& x) {
            return std::sqrt(x[2 * i] * x[2 * i] + x[2 * i + 1] * x[2 * i + 1] + 1e-6);
        };
        for (std::size_t c = 0; c < 2; ++c) {
            q[c] = d.in[0][2 * i + c] / length(d.in[0]);
            k[c] = d.in[1][2 * i + c] / length(d.in[1]);
        }
        const double a = std::exp(-std::exp(d.in[6][0]) * std::log1p(std::exp(d.in[3][i] + d.in[5][0])));
        const double b = 1 / (1 + std::exp(-d.in[4][i]));
        double next[2][2];
        for (std::size_t r = 0; r < 2; ++r)
            for (std::size_t c = 0; c < 2; ++c) {
                next[r][c] = b * d.in[2][2 * i + r] * k[c];
                for (std::size_t e = 0; e < 2; ++e) next[r][c] += a * s[r][e] * ((e == c ? 1 : 0) - b * k[e] * k[c]);
            }
        std::copy_n(&next[0][0], 4, &s[0][0]);
        for (std::size_t r = 0; r < 2; ++r) want.push_back(s[r][0] * q[0] + s[r][1] * q[1]);
    }
    CHECK(distance(d.y, want) <= forms_gate);
}

TEST_CASE("gated delta rule: extreme gates and equal keys stay well conditioned", "[recurrent]") {
    // Equal keys, full strength and no decay make the triangular system as ill conditioned as it can be; shut and open
    // gates in turn would overflow a quotient of decays.
    using mixer = gated_delta<1, 1, 3, 2>;
    sdepth::host<double> host(1);
    constexpr std::size_t n = 150;
    for (const double decay : {-60.0, 1e5, 0.0}) {
        for (const double strength : {40.0, -40.0}) {
            auto d = data<double>::of<mixer>({1, {n, nullptr}}, nullptr, true);
            for (std::size_t i = 0; i < n; ++i) {
                d.in[3][i] = decay != 0 ? decay : i % 3 == 0 ? 1e5 : -60;
                d.in[4][i] = strength;
                for (std::size_t c = 0; c < 3; ++c) d.in[1][3 * i + c] = i % 5 == 0 ? 0 : d.in[1][c + 3];
            }
            auto e = d;
            mixer::parallel(host, mixer::bind<double>(d, 0));
            mixer::step(host, mixer::bind<double>(e, 0));
            INFO("decay " << decay << ", strength " << strength);
            CHECK(distance(d.y, e.y) <= forms_gate);
            CHECK(distance(d.state, e.state) <= forms_gate);
            d.state.clear();
            mixer::backward(host, mixer::bind<double>(d, 0), d);
            for (const auto& grad : d.grad)
                CHECK(std::all_of(grad.begin(), grad.end(), [](double g) { return std::isfinite(g); }));
        }
    }
}
