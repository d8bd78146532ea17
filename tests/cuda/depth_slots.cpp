// SPDX-License-Identifier: MIT
// MoDA's slots written and read back, and their share of the softmax, on the GPU against the host oracle in fp64.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "numbers.hpp"
#include "operations.hpp"
#include "row_cases.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "support/catch.hpp"

namespace sdepth_test {

namespace {

using on_device::exact;

// Rows of some positions of sequences a third longer; dead rows have none.
struct slot_rows {
    int sequence;
    std::vector<int> ids;
    slot_rows(const row_case& c, std::mt19937_64& random) : sequence(c.capacity + c.capacity / 3 + 1) {
        std::vector<int> positions(static_cast<std::size_t>(sequence));
        std::iota(positions.begin(), positions.end(), 0);
        for (int b = 0; b < c.batch; ++b) {
            std::shuffle(positions.begin(), positions.end(), random);
            ids.insert(ids.end(), positions.begin(), positions.begin() + c.capacity);
            for (int i = std::max(0, c.rows().each.of(b)); i < c.capacity; ++i)
                ids[count(b, c.capacity, 1) + static_cast<std::size_t>(i)] = 1 << 28;
        }
    }
};

void check_slots(const row_case& c, int head_dim, bool every_row, bool seen) {
    std::mt19937_64 random(test_seed());
    INFO(c.batch << " x " << c.capacity << ", h " << head_dim << ", every row " << every_row << ", seen " << seen);
    sdepth::host<double> host(1);
    const slot_rows at(c, random);
    constexpr int slots = 4, heads = 3;
    const std::size_t positions = count(c.batch, at.sequence, 1), width = count(1, heads, head_dim);
    const std::size_t rows = every_row ? positions : c.numbers(1);
    const std::vector<double> k = normal(rows * width, random), v = normal(rows * width, random);
    struct outputs {
        std::vector<double> memory, k, v;
        std::vector<std::uint8_t> mask;
    } want{normal(positions * slots * 2 * width, random), normal(rows * width, random), normal(rows * width, random),
           std::vector<std::uint8_t>(positions * slots)};
    for (auto& m : want.mask) m = static_cast<std::uint8_t>(random() % 2);
    outputs got = want;
    const auto args = [&](outputs& o) {
        return sdepth::WriteSlotArgs<exact>{.rows = c.rows(),
                                            .sequence = at.sequence,
                                            .kv_heads = heads,
                                            .head_dim = head_dim,
                                            .slots = slots,
                                            .slot = 2,
                                            .seen = seen,
                                            .every_row = every_row,
                                            .ids = at.ids.data(),
                                            .k = k.data(),
                                            .v = v.data(),
                                            .memory = o.memory.data(),
                                            .mask = o.mask.data()};
    };
    host.write_slot(args(want)), on_device::write_slot(args(got));
    CHECK(got.memory == want.memory);
    CHECK(got.mask == want.mask);

    const std::vector<double> sum = normal_fp32(want.memory.size(), random);
    for (const bool adds : {false, true}) {
        const auto back = [&](outputs& o) {
            return sdepth::SlotGradientArgs<exact>{
                .forward = args(o), .slot_sum = sum.data(), .adds = adds, .grad_k = o.k.data(), .grad_v = o.v.data()};
        };
        outputs expected = want, found = want;
        host.slot_gradient(back(expected)), on_device::slot_gradient(back(found));
        check_rounded("grad_k", found.k, expected.k, in_bf16);
        check_rounded("grad_v", found.v, expected.v, in_bf16);
        CHECK((found.k != want.k || c.live == std::vector<int>{0, 0}));
    }
}

void check_mass(const row_case& c, bool causal, int window, bool ranges) {
    std::mt19937_64 random(test_seed());
    INFO(c.batch << " x " << c.capacity << ", causal " << causal << ", window " << window << ", ranges " << ranges);
    sdepth::host<double> host(1);
    const slot_rows at(c, random);
    constexpr int slots = 7, heads = 5;
    sdepth::DepthMassArgs<exact> m;
    auto& a = m.attention;
    a.batch = c.batch, a.heads = heads, a.queries = c.rows().each, a.causal = causal, a.window = window;
    a.keys.capacity = c.capacity + 3;
    std::vector<double> before = normal_fp32(c.numbers(heads), random), lse = before;
    for (double& x : lse) x += 1e-3 + static_cast<double>(random() % 1000) / 500, x = static_cast<float>(x);
    std::vector<int> first, last;
    for (std::size_t i = 0; ranges && i < c.numbers(1); ++i)
        first.push_back(static_cast<int>(random() % 50)), last.push_back(static_cast<int>(random() % 50));
    if (ranges) a.first = first.data(), a.last = last.data();
    std::vector<std::uint8_t> mask(count(c.batch, at.sequence, slots));
    for (auto& x : mask) x = random() % 3 != 0;
    m.sequence_lse = before.data(), a.lse = lse.data(), m.ids = at.ids.data(), m.mask = mask.data();
    m.seen = {{0, 4}, {2, 6}}, m.slots = slots, m.sequence = at.sequence;
    std::vector<double> want = normal_fp32(heads + 2, random), got = want, again = want;
    const auto into = [&](std::vector<double>& mass) {
        auto to = m;
        to.mass = mass.data();
        return to;
    };
    host.depth_mass(into(want)), on_device::depth_mass(into(got)), on_device::depth_mass(into(again));
    CHECK(same_bits(got, again));
    // A row's share is below 1 and moves by less than the difference of its log-sum-exps, which is below 4: that and
    // its exponential are rounded in fp32.
    for (std::size_t i = 0; i < want.size(); ++i)
        CHECK(std::abs(got[i] - want[i]) <= 8 * 0x1p-23 * static_cast<double>(c.numbers(1)));
}

}  // namespace

TEST_CASE("slots are written and their gradients read as on the host", "[depth_slots]") {
    for (const int head_dim : {64, 128})
        for (const auto& c : row_cases())
            for (const bool every_row : {false, true}) check_slots(c, head_dim, every_row, head_dim == 64);
}
TEST_CASE("shares of slots equal the oracle's", "[depth_slots]") {
    for (const auto& c : row_cases()) {
        check_mass(c, true, 0, false), check_mass(c, true, 5, false), check_mass(c, false, 0, false);
        check_mass(c, false, 0, true);
    }
}
TEST_CASE("slots on small shapes", "[depth_slots][small]") {
    for (const auto& c : small_row_cases()) {
        check_slots(c, 64, false, true), check_slots(c, 64, true, false);
        check_mass(c, true, 5, false);
    }
}

}  // namespace sdepth_test
