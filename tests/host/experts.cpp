// SPDX-License-Identifier: MIT
// Expert layers' operations on the host backend against scalar references and differences.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "support/catch.hpp"
#include "support/host_operations.hpp"
#include "support/samples.hpp"
#include "support/tolerance.hpp"

namespace {

using namespace sdepth;
using namespace sdepth_test;

const std::vector<int> live{5, 0, 3};
const batch_rows few{3, {6, live.data()}};

// The router of one batch: logits, choice, weights, groups.
template <class T>
struct routed {
    using P = uniform_precision<T>;
    batch_rows rows;
    int experts, each, ways;
    std::vector<T> logits, weights;
    std::vector<int> chosen, wanted, offsets, assignment, slot;
    std::vector<long long> load, counts;

    routed(batch_rows r, int e, int k, std::vector<T> z, int w = 0)
        : rows(r), experts(e), each(k), ways(w == 0 ? k : w), logits(std::move(z)) {
        const auto places = static_cast<std::size_t>(rows.capacity() * ways);
        poison_dead(logits, rows, experts);
        weights = poison<T>(rows.capacity() * ways);
        chosen.assign(places, -7), slot.assign(places, -7), assignment.assign(places, -7);
        wanted.assign(static_cast<std::size_t>(rows.batch * experts), -7);
        offsets.assign(static_cast<std::size_t>(experts + 1), -7);
        load.assign(static_cast<std::size_t>(experts), 0), counts.assign(3, 0);
    }
    ChooseExpertsArgs<P> choice(expert_choice by = expert_choice::by_token) {
        return {.rows = rows,
                .experts = experts,
                .each = each,
                .ways = ways,
                .choice = by,
                .logits = logits.data(),
                .chosen = chosen.data(),
                .wanted = wanted.data()};
    }
    ExpertWeightsArgs<P> weighting(expert_score score, score_order order, bool renormalise, double scale = 1) {
        return {rows, experts, ways, score, order, renormalise, scale, logits.data(), chosen.data(), weights.data()};
    }
    GroupExpertsArgs<P> grouping(double capacity = 0, overflow excess = overflow::skip) {
        return {.rows = rows,
                .experts = experts,
                .each = each,
                .ways = ways,
                .capacity = capacity,
                .excess = excess,
                .logits = logits.data(),
                .wanted = wanted.data(),
                .chosen = chosen.data(),
                .offsets = offsets.data(),
                .assignment = assignment.data(),
                .slot = slot.data(),
                .load = load.data(),
                .counts = counts.data()};
    }
    ExpertLossArgs<P> loss(balance kind, expert_score score = expert_score::softmax) {
        return {.rows = rows,
                .experts = experts,
                .each = each,
                .ways = ways,
                .score = score,
                .loss = kind,
                .logits = logits.data(),
                .weights = weights.data(),
                .chosen = chosen.data(),
                .wanted = wanted.data()};
    }
};

std::array<double, 3> losses_of(host<double>& host, ExpertLossArgs<uniform_precision<double>> args) {
    std::array<double, 3> sums{};
    args.sums = sums.data();
    host.expert_losses(args);
    return sums;
}

double sum_of_scores(const routed<double>& p) {
    double sum = 0;
    for (long long row = 0; row < p.rows.capacity(); ++row)
        for (int way = 0; way < p.ways; ++way)
            sum += p.logits[static_cast<std::size_t>(row * p.experts +
                                                     p.chosen[static_cast<std::size_t>(row * p.ways + way)])];
    return sum;
}

}  // namespace

TEST_CASE("experts: rows choose their largest, ties to the lower expert, a bias for the choice alone", "[experts]") {
    host<double> host(2);
    routed<double> p({1, {2, nullptr}}, 4, 2, {1, 3, 3, 1, 0, 0, 0, 0});
    host.choose_experts(p.choice());
    CHECK(p.chosen == std::vector<int>{1, 2, 0, 1});
    CHECK(p.wanted == std::vector<int>{1, 2, 1, 0});
    host.expert_weights(p.weighting(expert_score::sigmoid, score_order::score_then_choose, false));
    const std::vector<double> bias{0, 0, .1, 5};
    auto biased = p.choice();
    biased.bias = bias.data();
    host.choose_experts(biased);
    CHECK(p.chosen == std::vector<int>{3, 2, 3, 2});
    host.expert_weights(p.weighting(expert_score::sigmoid, score_order::score_then_choose, false));
    CHECK(p.weights[0] == Approx(1 / (1 + std::exp(-1.))).epsilon(1e-15));
    CHECK(p.weights[1] == Approx(1 / (1 + std::exp(-3.))).epsilon(1e-15));
    p.logits[3] = std::nan("");
    CHECK_THROWS_AS(host.choose_experts(p.choice()), error);
}

TEST_CASE("experts: weights of every score, order and normalisation, and their slopes", "[experts]") {
    host<double> host(2);
    for (const auto score : {expert_score::softmax, expert_score::sigmoid})
        for (const auto order : {score_order::choose_then_score, score_order::score_then_choose})
            for (const bool renormalise : {false, true}) {
                routed<double> p(few, 5, 2, samples<double>(18 * 5, 4));
                host.choose_experts(p.choice());
                const auto args = p.weighting(score, order, renormalise, 1.5);
                host.expert_weights(args);
                CHECK(dead_alone_are_nan(p.weights, few, 2));
                const double* z = p.logits.data() + 12 * 5;
                const auto raw = [&](int e) {
                    return score == expert_score::softmax ? std::exp(z[e]) : 1 / (1 + std::exp(-z[e]));
                };
                const int first = p.chosen[24], second = p.chosen[25];
                double total = 1;
                const bool among = score == expert_score::softmax && order == score_order::choose_then_score;
                if (renormalise || among)
                    total = raw(first) + raw(second);
                else if (score == expert_score::softmax)
                    total = raw(0) + raw(1) + raw(2) + raw(3) + raw(4);
                CHECK(p.weights[24] == Approx(1.5 * raw(first) / total).epsilon(1e-13));
                CHECK(p.weights[25] == Approx(1.5 * raw(second) / total).epsilon(1e-13));
                auto upstream = samples<double>(18 * 2, 5);
                poison_dead(upstream, few, 2);
                std::vector<double> grad(p.logits.size(), 0);
                host.expert_weights_backward({args, upstream.data(), grad.data()});
                const auto loss = [&] {
                    host.expert_weights(args);
                    return inner(p.weights, upstream);
                };
                CHECK(gradient_defect(loss, p.logits, grad) <= 1e-6);
            }
}

TEST_CASE("experts: losses of even and collapsed routers", "[experts]") {
    host<double> host(2);
    const batch_rows rows{2, {8, nullptr}};
    // Row i prefers expert i % 4, then (i + 1) % 4, by as much as there is.
    std::vector<double> even(64, 0), collapsed(64, 0);
    for (std::size_t i = 0; i < 16; ++i) {
        even[4 * i + i % 4] = 50, even[4 * i + (i + 1) % 4] = 49;
        collapsed[4 * i] = 50, collapsed[4 * i + 1] = 50 - 1e-9;
    }
    for (const auto score : {expert_score::softmax, expert_score::sigmoid})
        for (const balance kind : {balance::top_one, balance::top_k, balance::per_sequence}) {
            routed<double> good(rows, 4, 2, even), bad(rows, 4, 2, collapsed);
            host.choose_experts(good.choice());
            host.choose_experts(bad.choice());
            if (kind != balance::top_one || score == expert_score::softmax)
                CHECK(losses_of(host, good.loss(kind, score))[0] == Approx(1).epsilon(1e-6));
            // Two of four experts share everything: f = q = 1/2 for both. With top_one f = 1 for the first.
            CHECK(losses_of(host, bad.loss(kind, expert_score::softmax))[0] == Approx(2).epsilon(1e-6));
        }
    std::vector<double> one(64, 0);
    for (std::size_t i = 0; i < 16; ++i) one[4 * i + 2] = 100;
    for (const balance kind : {balance::top_one, balance::top_k, balance::per_sequence}) {
        routed<double> all(rows, 4, 1, one);
        host.choose_experts(all.choice());
        CHECK(losses_of(host, all.loss(kind))[0] == Approx(4).epsilon(1e-12));
    }
    routed<double> zero(rows, 4, 2, std::vector<double>(64, 0));
    host.choose_experts(zero.choice());
    const auto sums = losses_of(host, zero.loss(balance::none));
    CHECK(sums[1] == Approx(std::pow(std::log(4.), 2)).epsilon(1e-14));
    CHECK(sums[2] == Approx(16 * std::log(4.)).epsilon(1e-14));
    CHECK(sums[0] == 0);
}

TEST_CASE("experts: slopes of the losses; padding counts nowhere", "[experts]") {
    host<double> host(2);
    for (const auto score : {expert_score::softmax, expert_score::sigmoid})
        for (const balance kind : {balance::none, balance::top_one, balance::top_k, balance::per_sequence}) {
            std::vector<double> logits = samples<double>(18 * 4, 7);
            for (std::size_t i = 0; i < 18; ++i) logits[4 * i + i % 4] += 6;  // differences change no arg max
            routed<double> p(few, 4, 2, logits);
            host.choose_experts(p.choice());
            auto args = p.loss(kind, score);
            args.balance_scale = .7, args.z_scale = .3;
            std::vector<double> grad = poison<double>(18 * 4);
            args.grad_logits = grad.data();
            host.expert_losses(args);
            CHECK(dead_alone_are_nan(grad, few, 4));
            const auto loss = [&] {
                const auto sums = losses_of(host, p.loss(kind, score));
                return .7 * sums[0] + .3 * sums[1];
            };
            CHECK(gradient_defect(loss, p.logits, grad) <= 1e-6);
        }
}

TEST_CASE("experts: importance and load as published, on a toy batch", "[experts]") {
    host<double> host(1);
    const batch_rows rows{1, {3, nullptr}};
    const std::vector<int> ids{0, 1, 2};
    routed<double> p(rows, 3, 1, samples<double>(9, 1));
    const std::vector<double> clean = p.logits;
    const std::vector<double> spread = samples<double>(9, 2);
    const ExpertNoiseArgs<uniform_precision<double>> noise{
        rows, 3, 11, 2, 40, 3, ids.data(), clean.data(), spread.data(), p.logits.data()};
    host.expert_noise(noise);
    for (std::size_t i = 0; i < 9; ++i) {
        const double normal = random_normal(11, random_use::routing, 2, (40 + i / 3) * 3 + i % 3);
        CHECK(p.logits[i] == Approx(clean[i] + std::log1p(std::exp(spread[i])) * normal).epsilon(1e-13));
    }
    host.choose_experts(p.choice());
    host.expert_weights(p.weighting(expert_score::softmax, score_order::score_then_choose, false));
    double importance[3] = {}, load[3] = {};
    for (std::size_t row = 0; row < 3; ++row) {
        importance[p.chosen[row]] += p.weights[row];
        for (std::size_t e = 0; e < 3; ++e) {
            double mark = -1e300;  // the largest of the others
            for (std::size_t o = 0; o < 3; ++o)
                if (o != e) mark = std::max(mark, p.logits[3 * row + o]);
            const double width = std::log1p(std::exp(spread[3 * row + e]));
            load[e] += .5 * std::erfc((mark - clean[3 * row + e]) / width / std::sqrt(2.));
        }
    }
    const auto cv = [](const double* x) {
        const double mean = (x[0] + x[1] + x[2]) / 3;
        double variance = 0;
        for (int e = 0; e < 3; ++e) variance += (x[e] - mean) * (x[e] - mean) / 3;
        return variance / (mean * mean);
    };
    auto args = p.loss(balance::importance_load);
    args.clean = clean.data(), args.spread = spread.data();
    CHECK(losses_of(host, args)[0] == Approx(cv(importance) + cv(load)).epsilon(1e-12));
}

TEST_CASE("experts: every overflow policy accounts for every assignment", "[experts]") {
    host<double> host(1);
    const std::vector<int> some{500, 524};
    const batch_rows rows{2, {524, some.data()}};
    CHECK(expert_capacity(1.25, 2, 1024, 8) == 320);
    CHECK(expert_capacity(1.1, 1, 10, 1) == 11);
    std::vector<double> logits = samples<double>(1048 * 8, 3);
    for (std::size_t i = 0; i < 1048; ++i) logits[8 * i] += 2;  // expert 0 is wanted by most
    for (const overflow excess : {overflow::skip, overflow::reroute, overflow::defer}) {
        routed<double> p(rows, 8, 2, logits);
        host.choose_experts(p.choice());
        const std::vector<int> chosen = p.chosen;
        host.group_experts(p.grouping(1.25, excess));
        CHECK(p.counts[0] == 1024);
        CHECK(std::accumulate(p.load.begin(), p.load.end(), 0LL) == 2048);
        CHECK(p.load[0] > 320);
        const long long executed = p.offsets[8];
        CHECK(executed + p.counts[1] == 2048);
        int over = 0;
        for (std::size_t e = 0; e < 8; ++e) over += p.offsets[e + 1] - p.offsets[e] > 320 ? 1 : 0;
        CHECK((over > 0) == (excess == overflow::defer));
        CHECK((p.counts[1] > 0) == (excess == overflow::skip));
        CHECK((p.counts[2] > 0) == (excess != overflow::skip));
        CHECK((p.chosen != chosen) == (excess == overflow::reroute));
        for (long long row = 0; row < rows.capacity(); ++row) {
            if (row % 524 >= some[static_cast<std::size_t>(row / 524)]) continue;
            const auto at = static_cast<std::size_t>(2 * row);
            CHECK(p.chosen[at] != p.chosen[at + 1]);  // never one expert twice
            for (std::size_t way = at; way < at + 2; ++way) {
                if (p.slot[way] < 0) continue;
                CHECK(p.assignment[static_cast<std::size_t>(p.slot[way])] == static_cast<int>(way));
                const auto e = static_cast<std::size_t>(p.chosen[way]);
                CHECK((p.slot[way] >= p.offsets[e] && p.slot[way] < p.offsets[e + 1]));
            }
        }
    }
    // Nobody has room: what cannot be rerouted is reported.
    routed<double> full({1, {4, nullptr}}, 2, 2, samples<double>(8, 1));
    host.choose_experts(full.choice());
    host.group_experts(full.grouping(.5, overflow::reroute));
    CHECK((full.offsets[2] == 4 && full.counts[1] == 4 && full.counts[2] == 0));
}

TEST_CASE("experts: without room limits all rows may go to one expert", "[experts]") {
    host<double> host(2);
    std::vector<double> logits(18 * 3, 0);
    for (std::size_t i = 0; i < 18; ++i) logits[3 * i + 1] = 1;
    routed<double> p(few, 3, 1, logits);
    host.choose_experts(p.choice());
    host.group_experts(p.grouping());
    CHECK(p.offsets == std::vector<int>{0, 0, 8, 8});

    // Slots beyond the last are poison, empty experts hold poison: nothing of it arrives anywhere.
    const auto x = samples<double>(8 * 6, 2), grad_y = samples<double>(8 * 5, 3);
    std::vector<double> in = poison<double>(18 * 6), out = poison<double>(18 * 5), grad_out = poison<double>(18 * 5),
                        grad_in = poison<double>(18 * 6), weight = poison<double>(3 * 30), grad_weight(3 * 30, 0.);
    std::copy(x.begin(), x.end(), in.begin());
    std::copy(grad_y.begin(), grad_y.end(), grad_out.begin());
    const auto own = samples<double>(30, 5);
    std::copy(own.begin(), own.end(), weight.begin() + 30);
    const GroupedLinearArgs<uniform_precision<double>> args{3,         6, 5, p.offsets.data(), in.data(), weight.data(),
                                                            out.data()};
    host.grouped_linear(args);
    host.grouped_linear_backward({args, grad_out.data(), grad_in.data(), false, grad_weight.data()});
    for (std::size_t i = 0; i < 90; ++i) CHECK((grad_weight[i] == 0) == (i < 30 || i >= 60));
    for (std::size_t i = 0; i < 18; ++i) {
        CHECK(std::isnan(out[5 * i]) == (i >= 8));
        CHECK(std::isnan(grad_in[6 * i]) == (i >= 8));
    }
    CHECK(out[7] == Approx(std::inner_product(x.begin() + 6, x.begin() + 12, own.begin() + 12, 0.)).epsilon(1e-13));

    // No rows at all.
    const std::vector<int> nobody{0, 0, 0};
    routed<double> none({3, {6, nobody.data()}}, 3, 1, samples<double>(54, 1));
    host.choose_experts(none.choice());
    host.group_experts(none.grouping(1));
    host.expert_losses(none.loss(balance::top_k));
    CHECK(none.offsets == std::vector<int>{0, 0, 0, 0});
}

TEST_CASE("experts: experts choose equally many rows, their best", "[experts]") {
    host<double> host(2);
    routed<double> p(few, 4, 2, samples<double>(18 * 4, 9), 4);
    auto args = p.choice(expert_choice::by_expert);
    args.score = expert_score::sigmoid;
    host.choose_experts(args);
    host.group_experts(p.grouping());
    CHECK(p.load == std::vector<long long>{4, 4, 4, 4});  // ceil(2 x 8 / 4)
    for (int e = 0; e < 4; ++e) {
        double least = 1e300, most = -1e300;  // of the taken, of the others
        for (int b = 0; b < 3; ++b)
            for (int i = 0; i < live[static_cast<std::size_t>(b)]; ++i) {
                const long long row = few.first(b) + i;
                const auto own = p.chosen.begin() + row * 4;
                const double z = p.logits[static_cast<std::size_t>(row * 4 + e)];
                if (std::find(own, own + 4, e) != own + 4)
                    least = std::min(least, z);
                else
                    most = std::max(most, z);
            }
        CHECK(least > most);
    }
}

TEST_CASE("experts: the balanced assignment has exact shares and the largest sum", "[experts]") {
    host<double> host(1);
    for (std::uint64_t seed = 1; seed < 30; ++seed) {
        routed<double> p({1, {6, nullptr}}, 3, 1, samples<double>(18, seed));
        host.choose_experts(p.choice(expert_choice::balanced));
        CHECK(p.wanted == std::vector<int>{2, 2, 2});
        double best = -1e300;
        std::vector<int> order{0, 0, 1, 1, 2, 2};
        do {
            double sum = 0;
            for (std::size_t i = 0; i < 6; ++i) sum += p.logits[3 * i + static_cast<std::size_t>(order[i])];
            best = std::max(best, sum);
        } while (std::next_permutation(order.begin(), order.end()));
        CHECK(sum_of_scores(p) == Approx(best).epsilon(1e-12));

        // Two experts a row: equal shares, never one twice, against all choices of pairs.
        routed<double> two({1, {4, nullptr}}, 4, 2, samples<double>(16, seed));
        host.choose_experts(two.choice(expert_choice::balanced));
        CHECK(two.wanted == std::vector<int>{2, 2, 2, 2});
        constexpr int pairs[6][2] = {{0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {2, 3}};
        best = -1e300;
        for (int all = 0; all < 6 * 6 * 6 * 6; ++all) {
            int count[4] = {}, rest = all;
            double sum = 0;
            for (std::size_t i = 0; i < 4; ++i, rest /= 6)
                for (const int e : pairs[rest % 6]) ++count[e], sum += two.logits[4 * i + static_cast<std::size_t>(e)];
            if (std::equal(count, count + 4, std::array{2, 2, 2, 2}.begin())) best = std::max(best, sum);
        }
        CHECK(sum_of_scores(two) == Approx(best).epsilon(1e-12));
    }
    routed<double> large({1, {400, nullptr}}, 8, 2, samples<double>(3200, 1));
    host.choose_experts(large.choice(expert_choice::balanced));
    CHECK(large.wanted == std::vector<int>(8, 100));
}

TEST_CASE("experts: the middle of an expert, its slopes and those of the weights", "[experts]") {
    host<double> host(2);
    routed<double> p(few, 3, 2, samples<double>(18 * 3, 6));
    host.choose_experts(p.choice());
    host.expert_weights(p.weighting(expert_score::softmax, score_order::choose_then_score, true));
    host.group_experts(p.grouping());
    const batch_rows slots{1, {36, p.offsets.data() + 3}};
    auto gate = samples<double>(36 * 7, 1), up = samples<double>(36 * 7, 2), upstream = samples<double>(36 * 7, 3);
    poison_dead(gate, slots, 7), poison_dead(up, slots, 7), poison_dead(upstream, slots, 7);
    std::vector<double> act = poison<double>(36 * 7), grad_gate = act, grad_up = act;
    std::vector<double> grad_weights(p.weights.size(), 0);
    const WeightedSwigluArgs<uniform_precision<double>> args{
        slots, 7, p.assignment.data(), p.weights.data(), gate.data(), up.data(), act.data()};
    host.weighted_swiglu_backward({args, upstream.data(), grad_gate.data(), grad_up.data(), grad_weights.data()});
    const auto loss = [&] {
        host.weighted_swiglu(args);
        return inner(act, upstream);
    };
    CHECK(gradient_defect(loss, gate, grad_gate) <= 1e-6);
    CHECK(gradient_defect(loss, up, grad_up) <= 1e-6);
    CHECK(gradient_defect(loss, p.weights, grad_weights) <= 1e-6);

    // Gather and combine are each other's transpose, in the order of the ways.
    const auto x = samples<double>(18 * 5, 4), y = samples<double>(36 * 5, 5);
    std::vector<double> out = poison<double>(36 * 5), sum = poison<double>(18 * 5);
    host.gather_slots({slots, 5, 2, p.assignment.data(), x.data(), out.data()});
    host.combine_slots({few, 5, 2, false, p.slot.data(), y.data(), sum.data()});
    CHECK(dead_alone_are_nan(sum, few, 5));
    std::vector<double> live_x = x, live_y = y;
    poison_dead(live_x, few, 5), poison_dead(live_y, slots, 5);
    CHECK(inner(out, live_y) == Approx(inner(sum, live_x)).epsilon(1e-12));
    const auto first = static_cast<std::size_t>(p.slot[0]) * 5, second = static_cast<std::size_t>(p.slot[1]) * 5;
    CHECK(sum[0] == 0. + y[first] + y[second]);
}

TEST_CASE("experts: biases follow loads", "[experts]") {
    host<float> host(1);
    const std::vector<long long> load{4, 2, 0, 2, /* second layer */ 1, 1, 1, 1};
    std::vector<float> bias(10, .5f);
    host.steer_experts({2, 6, 4, .25, load.data(), bias.data()});
    CHECK(bias == std::vector<float>{.25f, .5f, .75f, .5f, .5f, .5f, .5f, .5f, .5f, .5f});
}

TEST_CASE("experts: float chooses as double does, and repeats on any number of threads", "[experts]") {
    const std::vector<int> many{90, 0, 33};
    const batch_rows rows{3, {90, many.data()}};
    host<double> oracle(1);
    host<float> one(1), three(3);
    routed<double> want(rows, 16, 3, samples<double>(270 * 16, 8));
    routed<float> got(rows, 16, 3, samples<float>(270 * 16, 8)), again = got;
    const auto run = [](auto& host, auto& p) {
        host.choose_experts(p.choice());
        host.group_experts(p.grouping(1, overflow::reroute));
        host.expert_weights(p.weighting(expert_score::sigmoid, score_order::score_then_choose, true));
    };
    run(oracle, want), run(one, got), run(three, again);
    CHECK(got.chosen == want.chosen);
    CHECK(got.slot == want.slot);
    CHECK(again.slot == want.slot);
    CHECK(distance(got.weights, want.weights) <= tolerance<float>(1, 8));
    CHECK(same_bits(got.weights, again.weights));

    constexpr int in = 40, out = 70;
    const auto x = samples<float>(810 * in, 1), weight = samples<float>(16 * in * out, 2),
               grad = samples<float>(810 * out, 3);
    const auto products = [&]<class T>(host<T>& host, std::type_identity<T>) {
        const std::vector<T> x_(x.begin(), x.end()), w_(weight.begin(), weight.end()), g_(grad.begin(), grad.end());
        std::vector<T> y(810 * out, T{0}), grad_x(810 * in, T{0}), grad_w(16 * in * out, T{0});
        const GroupedLinearArgs<uniform_precision<T>> args{16,        in,        out,     want.offsets.data(),
                                                           x_.data(), w_.data(), y.data()};
        host.grouped_linear(args);
        host.grouped_linear_backward({args, g_.data(), grad_x.data(), false, grad_w.data()});
        y.insert(y.end(), grad_x.begin(), grad_x.end());
        y.insert(y.end(), grad_w.begin(), grad_w.end());
        return y;
    };
    const auto exact = products(oracle, std::type_identity<double>{});
    const auto rounded = products(one, std::type_identity<float>{});
    CHECK(distance(rounded, exact) <= tolerance<float>(70, 8));
    CHECK(same_bits(rounded, products(three, std::type_identity<float>{})));
}
