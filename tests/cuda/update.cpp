// SPDX-License-Identifier: MIT
// The optimiser's operations on the GPU against the host oracle in fp64.
#include "numbers.hpp"
#include "operations.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "support/catch.hpp"

namespace sdepth_test {

namespace {

using on_device::exact;

void check_squares(long long n) {
    std::mt19937_64 random(test_seed());
    INFO("squares of " << n);
    sdepth::host<double> host(1);
    const std::vector<double> x = normal_fp32(static_cast<std::size_t>(n), random);
    double want = 3, got = 3, again = 3;
    host.squares({n, x.data(), &want});
    on_device::squares({n, x.data(), &got}), on_device::squares({n, x.data(), &again});
    CHECK(std::abs(got - want) <= 8 * 0x1p-24 * want);  // eight squares in fp32, the rest in double
    CHECK(got == again);
}

void check_adamw(long long layers, long long n, long long stride, bool reversed, double decay, double share = 1) {
    std::mt19937_64 random(test_seed());
    INFO("adamw " << layers << " x " << n << " every " << stride);
    sdepth::host<double> host(1);
    const auto all = static_cast<std::size_t>((layers - 1) * stride + n);
    const long long dense = (n + 7) / 8 * 8;  // second moments lie one after the other
    const std::vector<double> grad = normal_fp32(all, random);
    struct state {
        std::vector<double> w, m, v;
    } want{normal_fp32(all, random), normal_fp32(all, random),
           normal_fp32(static_cast<std::size_t>((layers - 1) * dense + n), random)};
    for (double& v : want.v) v *= v, v = static_cast<double>(static_cast<float>(v));
    state got = want, again = want;
    const sdepth::update_scalars scalars{.rate = .01, .grad_scale = .5, .correct1 = 1.7, .correct2 = 2.5};
    const auto args = [&](state& s) -> sdepth::AdamwArgs<exact> {
        return {.layers = layers,
                .count = n,
                .stride = stride,
                .grad_stride = reversed ? -stride : stride,
                .second_stride = dense,
                .decay = decay,
                .share = share,
                .scalars = &scalars,
                .master = s.w.data(),
                .grad = grad.data() + (reversed ? (layers - 1) * stride : 0),
                .first = s.m.data(),
                .second = s.v.data()};
    };
    host.adamw(args(want)), on_device::adamw(args(got));
    const double* copies = on_device::last_copies();
    check_rounded("weight", got.w, want.w, in_fp32);
    check_rounded("first", got.m, want.m, in_fp32);
    check_rounded("second", got.v, want.v, in_fp32);
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < all; ++i) {
        const bool between = static_cast<long long>(i) % std::max(stride, n) >= n;
        wrong += between ? !std::isnan(copies[i]) : copies[i] != rounded(got.w[i]);
    }
    CHECK(wrong == 0);
    on_device::adamw(args(again));
    CHECK((same_bits(got.w, again.w) && same_bits(got.m, again.m) && same_bits(got.v, again.v)));
}

void check_muon(long long layers, long long matrices, int rows, int cols, int together, bool nesterov = true) {
    std::mt19937_64 random(test_seed());
    INFO("muon " << layers << " x " << matrices << " of " << rows << " x " << cols << ", together " << together);
    sdepth::host<double> host(1);
    const long long size = static_cast<long long>(rows) * cols, stride = (matrices * size + 127) / 128 * 128;
    const auto all = static_cast<std::size_t>((layers - 1) * stride + matrices * size);
    const std::vector<double> grad = normal_fp32(all, random), weight = normal_fp32(all, random);
    std::vector<double> scratch(static_cast<std::size_t>(sdepth::muon_scratch(rows, cols)));
    struct state {
        std::vector<double> w, m;
    } want{weight, normal_fp32(all, random)};
    state got = want, again = want;
    const sdepth::update_scalars scalars{.rate = .5, .grad_scale = .5};
    const auto args = [&](state& s) -> sdepth::MuonArgs<exact> {
        return {.layers = layers,
                .matrices = matrices,
                .stride = stride,
                .grad_stride = -stride,
                .rows = rows,
                .cols = cols,
                .nesterov = nesterov,
                .scalars = &scalars,
                .master = s.w.data(),
                .grad = grad.data() + (layers - 1) * stride,
                .first = s.m.data(),
                .scratch = scratch.data(),
                .together = together};
    };
    host.muon(args(want)), on_device::muon(args(got));
    std::size_t wrong = 0;
    for (std::size_t i = 0; i < all; ++i) {
        const bool between = static_cast<long long>(i) % stride >= matrices * size;
        const double copy = on_device::last_copies()[i];
        wrong += between ? !std::isnan(copy) : copy != rounded(got.w[i]);
    }
    CHECK(wrong == 0);
    on_device::muon(args(again));
    check_rounded("momentum", got.m, want.m, in_fp32);
    CHECK((same_bits(got.w, again.w) && same_bits(got.m, again.m)));
    // X is stored in bfloat16 seven times, G and P five times each: independent roundings of 2^-8 / sqrt(3) rms, each
    // multiplied by at most the steepest slope of the polynomial, 3.4445.
    for (std::size_t i = 0; i < all; ++i) want.w[i] -= weight[i], got.w[i] -= weight[i];
    const error_size e = compare(got.w, want.w);
    const double bound = 0x1p-8 / std::sqrt(3.) * 3.4445 * std::sqrt(17.);
    CAPTURE(e.rms, e.max, bound);
    CHECK((e.rms <= bound && e.max <= 6 * bound));
}

}  // namespace

TEST_CASE("muon equals the oracle", "[update]") {
    check_muon(1, 1, 64, 64, 1), check_muon(3, 1, 128, 256, 2), check_muon(2, 3, 256, 96, 4);
    check_muon(1, 2, 40, 72, 16, false), check_muon(2, 1, 33, 20, 2), check_muon(1, 1, 512, 1024, 1);
}
TEST_CASE("muon: a zero gradient moves nothing", "[update]") {
    const sdepth::update_scalars scalars{.rate = 1};
    std::vector<double> w(64, 1), m(64), zero(64), scratch(8192);
    const std::vector<double> ones = w;
    on_device::muon({.rows = 8,
                     .cols = 8,
                     .scalars = &scalars,
                     .master = w.data(),
                     .grad = zero.data(),
                     .first = m.data(),
                     .scratch = scratch.data()});
    CHECK(w == ones);
}
TEST_CASE("squares equals the oracle", "[update]") {
    for (const long long n : {0, 1, 7, 8, 1000, 1000003, 10000000}) check_squares(n);
}
TEST_CASE("begin_update equals the oracle", "[update]") {
    sdepth::host<double> host(1);
    const sdepth::update_inputs inputs{.rate = .25, .step = 7};
    for (const double squares : {9., 1e-3, double(INFINITY), nan})
        for (const double loss : {3., nan, -double(INFINITY)}) {
            sdepth::update_scalars want, got;
            sdepth::BeginUpdateArgs a{
                .clip = 2, .inputs = &inputs, .squares = &squares, .loss = &loss, .scalars = &want};
            host.begin_update(a);
            a.scalars = &got;
            on_device::begin_update(a);
            CHECK((got.rate == want.rate && got.finite == want.finite));
            if (want.finite == 0) continue;
            CHECK(got.norm == Approx(want.norm).epsilon(1e-15));
            CHECK(got.grad_scale == Approx(want.grad_scale).epsilon(1e-15));
            CHECK(got.correct1 == Approx(want.correct1).epsilon(1e-14));
            CHECK(got.correct2 == Approx(want.correct2).epsilon(1e-14));
        }
}
TEST_CASE("adamw equals the oracle", "[update]") {
    check_adamw(1, 1, 0, false, .1), check_adamw(1, 100003, 0, false, .1), check_adamw(5, 1000, 1024, true, 0);
    check_adamw(3, 5, 128, false, .1), check_adamw(2, 256, 256, true, 0, .125), check_adamw(70, 2048, 4096, true, .1);
}
TEST_CASE("squares and adamw on small shapes", "[update][small]") {
    check_squares(0), check_squares(5), check_squares(3001), check_muon(2, 1, 16, 24, 2);
    check_adamw(3, 21, 128, true, .1);
}
TEST_CASE("adamw changes nothing after a step that is not finite", "[update]") {
    const sdepth::update_scalars scalars{.rate = 1, .finite = 0};
    std::vector<double> w(40, 1), m(40, 1), v(40, 1);
    const std::vector<double> grad(40, 1), ones = w;
    on_device::adamw({.count = 40,
                      .scalars = &scalars,
                      .master = w.data(),
                      .grad = grad.data(),
                      .first = m.data(),
                      .second = v.data()});
    CHECK((w == ones && m == ones && v == ones && std::isnan(on_device::last_copies()[0])));
}

}  // namespace sdepth_test
