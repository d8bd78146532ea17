// SPDX-License-Identifier: MIT
// RMS norms with a gate on the host backend.
#include "support/catch.hpp"
#include "support/host_operations.hpp"
#include "support/samples.hpp"
#include "support/tolerance.hpp"

namespace {

using namespace sdepth_test;
using sdepth::gate_place;

template <class T>
struct problem {
    using P = sdepth::uniform_precision<T>;
    sdepth::GatedNormArgs<P> args;
    sdepth::GatedNormBackwardArgs<P> back;
    std::vector<T> x, gate, w, y, rstd, grad_y, grad_x, grad_gate, grad_w;

    problem(const sdepth::batch_rows& rows, int groups, int width, bool gated, gate_place place) {
        const long long n = rows.capacity() * groups * width;
        x = samples<T>(n, 1), gate = samples<T>(n, 2), w = samples<T>(width, 3), grad_y = samples<T>(n, 4);
        y = grad_x = grad_gate = poison<T>(n), rstd = poison<T>(rows.capacity() * groups);
        grad_w = std::vector<T>(static_cast<std::size_t>(width));
        for (auto* rows_of : {&x, &gate, &grad_y}) poison_dead(*rows_of, rows, groups * width);
        args = {rows,     groups,   width,      place, 1e-5, x.data(), gated ? gate.data() : nullptr,
                w.data(), y.data(), rstd.data()};
        back = {args, grad_y.data(), grad_x.data(), gated ? grad_gate.data() : nullptr, grad_w.data()};
    }
    void run(sdepth::host<T>& host) {
        host.gated_norm(args);
        host.gated_norm_backward(back);
    }
};

}  // namespace

TEST_CASE("gated norm: written out, slopes, dead rows, threads, float", "[recurrent]") {
    const std::vector<int> live{2, 0, 3};
    const sdepth::batch_rows rows{3, {3, live.data()}};
    sdepth::host<double> host(2);
    sdepth::host<float> one(1), three(3);
    for (const bool gated : {false, true})
        for (const gate_place place : {gate_place::before, gate_place::after}) {
            problem<double> p(rows, 2, 5, gated, place);
            p.run(host);
            CHECK(dead_alone_are_nan(p.y, rows, 10));
            CHECK(dead_alone_are_nan(p.grad_x, rows, 10));
            std::vector<double> want = poison<double>(static_cast<long long>(p.y.size()));
            for (std::size_t group = 0; group < want.size() / 5; ++group) {
                double square = 0;
                const auto silu = [&](std::size_t c) { return p.gate[c] / (1 + std::exp(-p.gate[c])); };
                const auto u = [&](std::size_t c) {
                    return p.x[c] * (gated && place == gate_place::before ? silu(c) : 1);
                };
                for (std::size_t c = 5 * group; c < 5 * group + 5; ++c) square += u(c) * u(c);
                for (std::size_t c = 5 * group; c < 5 * group + 5; ++c)
                    want[c] = p.w[c % 5] * u(c) / std::sqrt(square / 5 + 1e-5) *
                              (gated && place == gate_place::after ? silu(c) : 1);
            }
            CHECK(distance(p.y, want) <= 1e-14);
            const auto loss = [&] {
                host.gated_norm(p.args);
                return inner(p.y, p.grad_y);
            };
            CHECK(gradient_defect(loss, p.x, p.grad_x) <= 1e-6);
            CHECK(gradient_defect(loss, p.w, p.grad_w) <= 1e-6);
            if (gated) CHECK(gradient_defect(loss, p.gate, p.grad_gate) <= 1e-6);

            problem<float> a(rows, 2, 5, gated, place), b(rows, 2, 5, gated, place);
            problem<double> c(rows, 2, 5, gated, place);
            a.run(one), b.run(three), c.run(host);
            CHECK(same_bits(a.y, b.y));
            CHECK(same_bits(a.grad_x, b.grad_x));
            CHECK(same_bits(a.grad_w, b.grad_w));
            CHECK(distance(a.y, c.y) <= tolerance<float>(5, 10));
            CHECK(distance(a.grad_x, c.grad_x) <= tolerance<float>(5, 40));
            CHECK(distance(a.grad_w, c.grad_w) <= tolerance<float>(50, 40));
        }
}
