// SPDX-License-Identifier: MIT
// Short convolutions on the host backend. There is one form; its state is the tail of inputs.
#include "host/recurrent.hpp"

namespace {

using namespace sdepth_test;

template <int Channels, int Width, bool Bias>
struct short_conv {
    template <class T>
    using args = sdepth::ShortConvArgs<sdepth::uniform_precision<T>>;

    static std::vector<field> fields() {
        std::vector<field> all{{Channels}, {Channels * Width, true}};
        if (Bias) all.push_back({Channels, true});
        return all;
    }
    static int outputs() { return Channels; }
    static int state() { return (Width - 1) * Channels; }
    template <class T>
    static args<T> bind(data<T>& d, long long begin) {
        return {.rows = d.rows,
                .channels = Channels,
                .width = Width,
                .first = d.first,
                .x = d.in[0].data() + begin * Channels,
                .weight = d.in[1].data(),
                .bias = Bias ? d.in[2].data() : nullptr,
                .tail = d.state_of_call(),
                .y = d.y.data() + begin * Channels};
    }
    static void parallel(auto& host, const auto& a) { host.short_conv(a); }
    static void step(auto& host, const auto& a) { host.short_conv(a); }
    template <class T>
    static void backward(auto& host, const args<T>& a, data<T>& d) {
        host.short_conv_backward({.forward = a,
                                  .grad_y = d.grad_y.data(),
                                  .grad_x = d.grad[0].data(),
                                  .grad_weight = d.grad[1].data(),
                                  .grad_bias = Bias ? d.grad[2].data() : nullptr});
    }
};

}  // namespace

TEMPLATE_TEST_CASE("short convolution: segments, documents, slopes, threads", "[recurrent]", (short_conv<5, 4, true>),
                   (short_conv<3, 2, false>), (short_conv<2, 6, true>)) {
    segments_join<TestType>();
    documents_stand_alone<TestType>();
    slopes_agree<TestType>();
    float_is_near_and_threads_do_not_show<TestType>(33, 12);
}

TEST_CASE("short convolution: written out; the tail holds the inputs before the filter", "[recurrent]") {
    using mixer = short_conv<1, 3, true>;
    sdepth::host<double> host(1);
    auto d = data<double>::of<mixer>({1, {2, nullptr}}, nullptr, true);
    d.in[0] = {5, 7}, d.in[1] = {1, 10, 100}, d.in[2] = {0.5}, d.state = {2, 3};
    mixer::parallel(host, mixer::bind<double>(d, 0));
    const auto silu = [](double x) { return x / (1 + std::exp(-x)); };
    CHECK(distance(d.y, std::vector{silu(0.5 + 500 + 30 + 2), silu(0.5 + 700 + 50 + 3)}) <= 1e-15);
    CHECK(d.state == std::vector<double>{5, 7});
    d.rows = {1, {1, nullptr}};
    mixer::parallel(host, mixer::bind<double>(d, 0));
    CHECK(d.state == std::vector<double>{7, 5});
}
