// SPDX-License-Identifier: MIT
// Gradients of a run's routers by version of a row, on the GPU against the host oracle in fp64.
#include <algorithm>
#include <limits>
#include <numeric>

#include "numbers.hpp"
#include "operations.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "support/catch.hpp"

namespace sdepth_test {

namespace {

using on_device::exact;

struct versions {
    int layers, width, length, capacity;
    std::vector<int> live, chosen;
    std::vector<double> x, weight, grad_logits;
    std::vector<int> ids;  // [layers, 2, capacity]

    versions(int n, int d, int rows, int most, bool dead, std::mt19937_64& random)
        : layers(n), width(d), length(rows), capacity(most), live{rows, dead ? rows / 2 : rows} {
        chosen = {most, std::min(most, live[1])};
        x = normal(count(2, rows, d), random), weight = normal_fp32(count(1, n, d), random);
        grad_logits = normal_fp32(count(2, rows, n), random);
        for (int l = 0; l < 2 * n; ++l) {
            std::vector<int> all(static_cast<std::size_t>(live[static_cast<std::size_t>(l % 2)]));
            std::iota(all.begin(), all.end(), 0);
            std::shuffle(all.begin(), all.end(), random);
            all.resize(static_cast<std::size_t>(most), 0);
            std::sort(all.begin(), all.begin() + chosen[static_cast<std::size_t>(l % 2)]);
            ids.insert(ids.end(), all.begin(), all.end());
        }
    }
};
struct outputs {
    std::vector<double> grad_x, grad_weight, sums;
    std::vector<int> later;
};

template <class F>
outputs run(const versions& v, outputs o, int parts, F operation) {
    o.sums.assign(count(parts, v.layers, v.width), 0);
    o.later.assign(count(2, v.length, 1), 0);
    for (int l = v.layers; l >= 0; --l) {
        const bool end = l == 0;
        operation({.rows = end ? sdepth::batch_rows{2, {v.length, v.live.data()}}
                               : sdepth::batch_rows{2, {v.capacity, v.chosen.data()}},
                   .sequence = v.length,
                   .width = v.width,
                   .layers = v.layers,
                   .first = l,
                   .ids = end ? nullptr : v.ids.data() + count(2, v.capacity, l - 1),
                   .x = v.x.data(),
                   .weight = v.weight.data(),
                   .stride = v.width,
                   .grad_logits = v.grad_logits.data(),
                   .later = o.later.data(),
                   .grad_x = o.grad_x.data(),
                   .sums = o.sums.data(),
                   .grad_weight = o.grad_weight.data(),
                   .grad_stride = v.width});
    }
    return o;
}

void check_versions(int layers, int width, int length, int capacity, bool dead) {
    std::mt19937_64 random(test_seed());
    INFO(layers << " layers, " << capacity << " of " << length << " rows, width " << width);
    const versions v(layers, width, length, capacity, dead, random);
    const outputs start{normal(count(2, length, width), random), normal_fp32(count(1, layers, width), random), {}, {}};
    sdepth::host<double> host(1);
    const outputs want =
        run(v, start, 1, [&](const sdepth::RouteVersionBackwardArgs<exact>& a) { host.route_version_backward(a); });
    const auto on_gpu = [](const sdepth::RouteVersionBackwardArgs<exact>& a) { on_device::route_version_backward(a); };
    const outputs got = run(v, start, on_device::route_parts, on_gpu),
                  again = run(v, start, on_device::route_parts, on_gpu);
    // A row is rounded once a version: as often as it is chosen, and at the end.
    check_rounded("grad_x", got.grad_x, want.grad_x,
                  {.unit = 0x1p-8, .own = 1, .mixed = 1 + layers / 2., .terms = double(layers)});
    check_rounded("grad_weight", got.grad_weight, want.grad_weight, {.unit = 0x1p-24, .terms = 2. * length});
    CHECK((same_bits(got.grad_x, again.grad_x) && same_bits(got.grad_weight, again.grad_weight)));
}

// All rows, then those that each layer chose, as in a run; logits of dead rows and of layers done before stay NaN.
void check_version_logits(int layers, int width, int length, int capacity, bool dead) {
    std::mt19937_64 random(test_seed());
    INFO(layers << " layers, " << capacity << " of " << length << " rows, width " << width);
    const versions v(layers, width, length, capacity, dead, random);
    const auto logits = [&](auto operation) {
        std::vector<double> out(count(2, length, layers), std::numeric_limits<double>::quiet_NaN());
        for (int l = 0; l < layers; ++l) {
            const bool all = l == 0;
            operation(
                sdepth::RouteVersionLogitsArgs<exact>{.rows = all ? sdepth::batch_rows{2, {length, v.live.data()}}
                                                                  : sdepth::batch_rows{2, {capacity, v.chosen.data()}},
                                                      .sequence = length,
                                                      .width = width,
                                                      .layers = layers,
                                                      .first = l,
                                                      .ids = all ? nullptr : v.ids.data() + count(2, capacity, l - 1),
                                                      .x = v.x.data(),
                                                      .weight = v.weight.data(),
                                                      .stride = width,
                                                      .logits = out.data(),
                                                      .logits_stride = 2LL * length});
        }
        return out;
    };
    sdepth::host<double> host(1);
    const auto want = logits([&](const auto& a) { host.route_version_logits(a); });
    const auto on_gpu = [](const auto& a) { on_device::route_version_logits(a); };
    const auto got = logits(on_gpu), again = logits(on_gpu);
    check_rounded("logits", got, want, {.unit = 0x1p-24, .terms = double(width)});
    CHECK(same_bits(got, again));
    // The rows do not change here, so that one pass over all of them finds the same bits.
    std::vector<double> once(got.size(), std::numeric_limits<double>::quiet_NaN());
    on_device::route_version_logits({.rows = {2, {length, v.live.data()}},
                                     .sequence = length,
                                     .width = width,
                                     .layers = layers,
                                     .x = v.x.data(),
                                     .weight = v.weight.data(),
                                     .stride = width,
                                     .logits = once.data(),
                                     .logits_stride = 2LL * length});
    CHECK(same_bits(got, once));
}

}  // namespace

TEST_CASE("route_version_logits follows the oracle", "[route]") {
    check_version_logits(1, 64, 40, 10, false);
    check_version_logits(6, 1024, 300, 37, true);
    check_version_logits(48, 1536, 120, 16, false);
    check_version_logits(100, 72, 90, 12, true);  // more layers than one block holds
    check_version_logits(5, 50, 33, 9, true);     // width no multiple of 8
}

TEST_CASE("route_version_backward follows the oracle", "[route]") {
    check_versions(1, 64, 40, 10, false);
    check_versions(6, 1024, 300, 37, true);
    check_versions(32, 128, 500, 63, false);
    check_versions(100, 72, 90, 12, true);  // more layers than one pass holds
    check_versions(5, 50, 33, 9, true);     // width no multiple of 8
}

TEST_CASE("routing by version of a row on small shapes", "[small]") {
    check_versions(3, 72, 20, 5, true);
    check_version_logits(3, 72, 20, 5, true);
}

}  // namespace sdepth_test
