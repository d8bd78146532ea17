// SPDX-License-Identifier: MIT
// Selection on the GPU against the host oracle: the same rows, exactly. Logits are multiples of a power of two, so that
// fp32 and fp64 order them alike.
#include <algorithm>
#include <string>

#include "numbers.hpp"
#include "operations.hpp"
#include "row_cases.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "support/catch.hpp"

namespace sdepth_test {

namespace {

using on_device::exact;
using sdepth::selection_rule;

enum class spread { normal, few_values, one_value, far_apart };

struct select_case {
    row_case of;
    long long sparsity;
    selection_rule rule = selection_rule::top;
    spread kind = spread::normal;
    int mean_document = 0;  // 0: none
    bool biased = true;
};

struct select_problem {
    select_case c;
    int capacity;
    std::vector<double> logits, bias, u;
    double cut = .375, cut_sum = .5;
    long long cut_groups = 3;
    std::vector<int> documents, ids, live;

    select_problem(const select_case& what, std::mt19937_64& random) : c(what) {
        const int length = c.of.capacity;
        std::normal_distribution<double> draw;
        for (std::size_t i = 0; i < c.of.numbers(1); ++i) {
            double s = std::round(draw(random) * 1024) / 1024;
            if (c.kind == spread::few_values) s = double(random() % 4) - 2;
            if (c.kind == spread::one_value) s = 0;
            if (c.kind == spread::far_apart) s = std::ldexp(random() % 2 == 0 ? 1. : -1., int(random() % 100) - 50);
            logits.push_back(s);
            bias.push_back(c.kind == spread::far_apart ? 0 : double(random() % 3));
        }
        kill_dead(logits, c.of.rows(), 1), kill_dead(bias, c.of.rows(), 1);
        u.assign(logits.size(), nan);
        int groups = 1;
        if (c.mean_document > 0)
            for (int b = 0, document = 0; b < c.of.batch; ++b)
                for (int i = 0; i < length; ++i) {
                    if (i > 0 && random() % unsigned(c.mean_document) == 0) document += 1 + int(random() % 3), ++groups;
                    documents.push_back(document);
                }
        capacity = std::min(length, int((length + c.sparsity - 1) / c.sparsity) + groups);
        if (c.rule == selection_rule::threshold || c.sparsity == 1) capacity = length;
        ids.assign(count(c.of.batch, capacity, 1), -5), live.assign(std::size_t(c.of.batch), -5);
    }
    sdepth::SelectArgs<exact> args() {
        return {.rows = c.of.rows(),
                .capacity = capacity,
                .sparsity = c.sparsity,
                .rule = c.rule,
                .tau = .5,
                .biased = c.biased,
                .logits = logits.data(),
                .bias = bias.data(),
                .cut = &cut,
                .documents = documents.empty() ? nullptr : documents.data(),
                .u = u.data(),
                .ids = ids.data(),
                .live = live.data(),
                .cut_sum = &cut_sum,
                .cut_groups = &cut_groups};
    }
};

void check_select(const select_case& c) {
    std::mt19937_64 random(test_seed());
    sdepth::host<double> host(1);
    select_problem want(c, random), got = want;
    const select_problem before = want;
    host.select(want.args());
    for (const bool portable : {false, true}) {
        if (portable && c.of.capacity > 50000) continue;
        INFO("select " << c.of.batch << " x " << c.of.capacity << ", one of " << c.sparsity << ", rule " << int(c.rule)
                       << ", spread " << int(c.kind) << ", documents of " << c.mean_document << ", portable "
                       << portable);
        got = before;
        on_device::select(got.args(), portable);
        CHECK(got.live == want.live);
        CHECK(got.ids == want.ids);
        // far_apart: u rounds in fp32.
        if (c.kind != spread::far_apart) CHECK(same_bits(got.u, want.u));
        CHECK(got.cut_groups == want.cut_groups);
        CHECK(got.cut_sum == Approx(want.cut_sum).epsilon(1e-15));
    }
}

}  // namespace

TEST_CASE("select chooses the oracle's rows", "[select]") {
    const std::vector<row_case> shapes{
        {1, 1, {}},     {1, 2, {}},           {2, 7, {}},     {3, 1000, {}},
        {1, 4096, {}},  {2, 8197, {8197, 0}}, {1, 32768, {}}, {8, 4099, {5, 4099, 1, 0, 4000, 17, 31, 32}},
        {1, 70001, {}}, {2, 12345, {}}};
    for (const row_case& of : shapes)
        for (const long long sparsity : {8LL, 3LL, 1LL, 100000LL})
            for (const spread kind : {spread::normal, spread::few_values, spread::one_value, spread::far_apart})
                for (const selection_rule rule : {selection_rule::top, selection_rule::threshold})
                    if (of.capacity < 10000 || sparsity == 8) check_select({of, sparsity, rule, kind});
    check_select({{1, 32768, {}}, 8, selection_rule::top, spread::normal, 0, false});
}
TEST_CASE("select by documents chooses the oracle's rows", "[select]") {
    for (const row_case& of :
         std::vector<row_case>{{1, 1, {}}, {2, 1000, {}}, {3, 3000, {3000, 0, 1234}}, {1, 32768, {}}})
        for (const int mean : {1, 20, 900, 1000000})
            for (const spread kind : {spread::normal, spread::few_values}) {
                check_select({of, 8, selection_rule::top, kind, mean});
                check_select({of, 2, selection_rule::threshold, kind, mean});
            }
}
TEST_CASE("select on small shapes", "[select][small]") {
    for (const spread kind : {spread::normal, spread::few_values}) {
        check_select({{2, 203, {203, 50}}, 8, selection_rule::top, kind});
        check_select({{1, 70, {}}, 4, selection_rule::threshold, kind});
        check_select({{2, 90, {}}, 4, selection_rule::top, kind, 9});
    }
}
TEST_CASE("select keeps within its capacity", "[select]") {
    const std::vector<double> logits(100, 1);
    std::vector<double> u(100);
    std::vector<int> ids(13, -5), live(1);
    for (const bool portable : {false, true}) {
        on_device::select({.rows = {1, {100}},
                           .capacity = 10,
                           .sparsity = 2,
                           .rule = selection_rule::threshold,
                           .biased = false,
                           .logits = logits.data(),
                           .u = u.data(),
                           .ids = ids.data(),
                           .live = live.data()},
                          portable);
        CHECK(live[0] == 10);
        for (int i = 0; i < 10; ++i) CHECK(ids[std::size_t(i)] == i);
    }
}

}  // namespace sdepth_test
