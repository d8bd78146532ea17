// SPDX-License-Identifier: MIT
// Diagonal real S4 on the host backend.
#include "host/recurrent.hpp"

namespace {

using namespace sdepth_test;

template <int Channels, int States>
struct s4 {
    template <class T>
    using args = sdepth::S4Args<sdepth::uniform_precision<T>>;

    static std::vector<field> fields() {
        const field each{Channels * States, true, 0, 0.5};
        return {{Channels}, each, each, each, {Channels, true, 1}, {Channels, true, -1, 0.5}};
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
                .a_log = d.in[1].data(),
                .b = d.in[2].data(),
                .c = d.in[3].data(),
                .skip = d.in[4].data(),
                .log_step = d.in[5].data(),
                .state = d.state_of_call(),
                .y = d.y.data() + begin * Channels};
    }
    static void parallel(auto& host, const auto& a) { host.s4(a); }
    static void step(auto& host, const auto& a) { host.s4_step(a); }
    template <class T>
    static void backward(auto& host, const args<T>& a, data<T>& d) {
        host.s4_backward({.forward = a,
                          .grad_y = d.grad_y.data(),
                          .grad_x = d.grad[0].data(),
                          .grad_a_log = d.grad[1].data(),
                          .grad_b = d.grad[2].data(),
                          .grad_c = d.grad[3].data(),
                          .grad_skip = d.grad[4].data(),
                          .grad_log_step = d.grad[5].data()});
    }
};

// e^m of a 2 x 2 matrix by its series, after halving it 20 times.
std::vector<double> matrix_exponential(std::vector<double> m) {
    const auto times = [](const std::vector<double>& a, const std::vector<double>& b) {
        return std::vector<double>{a[0] * b[0] + a[1] * b[2], a[0] * b[1] + a[1] * b[3], a[2] * b[0] + a[3] * b[2],
                                   a[2] * b[1] + a[3] * b[3]};
    };
    for (double& e : m) e /= 1 << 20;
    std::vector<double> sum{1, 0, 0, 1}, term = sum;
    for (int n = 1; n < 12; ++n) {
        term = times(term, m);
        for (std::size_t e = 0; e < 4; ++e) sum[e] += (term[e] /= n);
    }
    for (int n = 0; n < 20; ++n) sum = times(sum, sum);
    return sum;
}

}  // namespace

TEMPLATE_TEST_CASE("s4: convolution and recurrence, segments, documents, slopes, threads", "[recurrent]", (s4<5, 3>),
                   (s4<1, 1>), (s4<3, 8>)) {
    forms_agree<TestType>();
    segments_join<TestType>();
    documents_stand_alone<TestType>();
    slopes_agree<TestType>();
    float_is_near_and_threads_do_not_show<TestType>(11 * 8, 20);
}

TEST_CASE("s4: zero-order hold is the matrix exponential", "[recurrent]") {
    for (const double a : {-0.5, -1.0, -7.0, -64.0})
        for (const double b : {1.0, -0.3})
            for (const double step : {1e-3, 0.1, 1.0}) {
                const auto want = matrix_exponential({a * step, b * step, 0, 0});
                const sdepth::on_host::detail::held got(a, b, step);
                INFO("a " << a << ", b " << b << ", step " << step);
                CHECK(std::abs(got.keep - want[0]) <= 1e-9);
                CHECK(std::abs(got.write - want[1]) <= 1e-9);
            }
}

TEST_CASE("s4: from no state the convolution of the whole sequence, written out", "[recurrent]") {
    using mixer = s4<1, 3>;
    sdepth::host<double> host(1);
    constexpr std::size_t n = 9;
    auto d = data<double>::of<mixer>({1, {n, nullptr}}, nullptr, false);
    d.chunk = n;
    mixer::parallel(host, mixer::bind<double>(d, 0));
    std::vector<double> want;
    for (std::size_t i = 0; i < n; ++i) {
        double y = d.in[4][0] * d.in[0][i];
        for (std::size_t j = 0; j <= i; ++j)
            for (std::size_t s = 0; s < 3; ++s) {
                const double rate = -std::exp(d.in[1][s]), step = std::exp(d.in[5][0]);
                y += d.in[3][s] * std::exp(static_cast<double>(i - j) * step * rate) * (std::exp(step * rate) - 1) /
                     rate * d.in[2][s] * d.in[0][j];
            }
        want.push_back(y);
    }
    CHECK(distance(d.y, want) <= forms_gate);
}
