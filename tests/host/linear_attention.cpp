// SPDX-License-Identifier: MIT
// Linear attention on the host backend.
#include "host/recurrent.hpp"

namespace {

using namespace sdepth_test;

template <sdepth::feature_map Map, bool Gated, int Heads = 3, int Keys = 4, int Values = 5>
struct linear_attention {
    template <class T>
    using args = sdepth::LinearAttentionArgs<sdepth::uniform_precision<T>>;

    static std::vector<field> fields() {
        // Features that are smooth over the differences, and denominators away from zero.
        const double centre = Map == sdepth::feature_map::exponential ? 0 : 3;
        const field key{Heads * Keys, false, centre, 0.5};
        std::vector<field> all{key, key, {Heads * Values}};
        if (Gated) all.push_back({Heads, false, 2, 2});
        return all;
    }
    static int outputs() { return Heads * Values; }
    static int state() { return Heads * Keys * (Values + 1); }
    template <class T>
    static args<T> bind(data<T>& d, long long begin) {
        return {.rows = d.rows,
                .heads = Heads,
                .key_dim = Keys,
                .value_dim = Values,
                .map = Map,
                .chunk = d.chunk,
                .first = d.first,
                .q = d.in[0].data() + begin * Heads * Keys,
                .k = d.in[1].data() + begin * Heads * Keys,
                .v = d.in[2].data() + begin * Heads * Values,
                .gate = Gated ? d.in[3].data() + begin * Heads : nullptr,
                .state = d.state_of_call(),
                .y = d.y.data() + begin * Heads * Values};
    }
    static void parallel(auto& host, const auto& a) { host.linear_attention(a); }
    static void step(auto& host, const auto& a) { host.linear_attention_step(a); }
    template <class T>
    static void backward(auto& host, const args<T>& a, data<T>& d) {
        host.linear_attention_backward({.forward = a,
                                        .grad_y = d.grad_y.data(),
                                        .grad_q = d.grad[0].data(),
                                        .grad_k = d.grad[1].data(),
                                        .grad_v = d.grad[2].data(),
                                        .grad_gate = Gated ? d.grad[3].data() : nullptr});
    }
};

using sdepth::feature_map;

}  // namespace

TEMPLATE_TEST_CASE("linear attention: forms, segments, documents, slopes, threads", "[recurrent]",
                   (linear_attention<feature_map::elu_plus_one, true>),
                   (linear_attention<feature_map::elu_plus_one, false>), (linear_attention<feature_map::relu, true>),
                   (linear_attention<feature_map::exponential, true>),
                   (linear_attention<feature_map::exponential, true, 1, 2, 1>)) {
    forms_agree<TestType>();
    segments_join<TestType>();
    documents_stand_alone<TestType>();
    slopes_agree<TestType>();
    float_is_near_and_threads_do_not_show<TestType>(11 * 5, 20);
}

TEST_CASE("linear attention: the quadratic form written out, and gates that shut", "[recurrent]") {
    using mixer = linear_attention<feature_map::exponential, true, 1, 2, 3>;
    sdepth::host<double> host(1);
    constexpr int n = 9;
    auto d = data<double>::of<mixer>({1, {n, nullptr}}, nullptr, false);
    mixer::parallel(host, mixer::bind<double>(d, 0));
    std::vector<double> want;
    for (std::size_t i = 0; i < n; ++i) {
        double sums[4] = {};
        for (std::size_t j = 0; j <= i; ++j) {
            double weight = 0;
            for (std::size_t c = 0; c < 2; ++c) weight += std::exp(d.in[0][2 * i + c]) * std::exp(d.in[1][2 * j + c]);
            for (std::size_t t = j + 1; t <= i; ++t) weight /= 1 + std::exp(-d.in[3][t]);
            for (std::size_t c = 0; c < 3; ++c) sums[c] += weight * d.in[2][3 * j + c];
            sums[3] += weight;
        }
        for (std::size_t c = 0; c < 3; ++c) want.push_back(sums[c] / (sums[3] + 1e-6));
    }
    CHECK(distance(d.y, want) <= forms_gate);

    // A shut gate forgets all; with epsilon small against the denominator, y is then the own value.
    for (const double shut : {-40.0, -800.0, -1e308}) {
        std::fill(d.in[3].begin(), d.in[3].end(), shut);
        mixer::parallel(host, mixer::bind<double>(d, 0));
        CHECK(distance(d.y, d.in[2]) <= 1e-4);
        mixer::backward(host, mixer::bind<double>(d, 0), d);
        for (const auto& grad : d.grad)
            CHECK(std::all_of(grad.begin(), grad.end(), [](double g) { return std::isfinite(g); }));
    }
}
