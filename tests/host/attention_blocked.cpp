// SPDX-License-Identifier: MIT
// Attention as matrix products against the plain form, over visibilities, tails and dead rows.
#include "sdepth/kernels/host/attention_blocked.hpp"

#include <vector>

#include "support/catch.hpp"
#include "support/samples.hpp"
#include "support/tolerance.hpp"

namespace {

using namespace sdepth_test;
using sdepth::AttentionArgs;
using sdepth::AttentionBackwardArgs;
using sdepth::on_host::workers;

template <class T>
struct problem {
    AttentionArgs<T> args;
    std::vector<T> q, k, v, o, lse, grad_o, grad_q, grad_k, grad_v;

    explicit problem(const AttentionArgs<T>& a) : args(a) {
        const auto size = [&](int rows, int stride) { return static_cast<long long>(a.batch) * rows * stride; };
        const long long nq = size(a.queries.capacity, a.q_stride()), nk = size(a.keys.capacity, a.kv_stride());
        const long long no = size(a.queries.capacity, a.heads * a.head_dim);
        q = samples<T>(nq, 1), k = samples<T>(nk, 2), v = samples<T>(nk, 3), grad_o = samples<T>(no, 4);
        poison_dead(q, {a.batch, a.queries}, a.q_stride()), poison_dead(k, {a.batch, a.keys}, a.kv_stride());
        poison_dead(v, {a.batch, a.keys}, a.kv_stride()),
            poison_dead(grad_o, {a.batch, a.queries}, a.heads * a.head_dim);
        o = poison<T>(no), lse = poison<T>(size(a.queries.capacity, a.heads));
        grad_q = poison<T>(nq), grad_k = grad_v = poison<T>(nk);
        args.q = q.data(), args.k = k.data(), args.v = v.data(), args.o = o.data(), args.lse = lse.data();
    }
    AttentionBackwardArgs<T> back() { return {args, grad_o.data(), grad_q.data(), grad_k.data(), grad_v.data()}; }
    void plain() {
        sdepth::on_host::attention_forward(args);
        sdepth::on_host::attention_backward(back());
    }
    void blocked(workers& team) {
        sdepth::on_host::blocked_attention(team, args);
        sdepth::on_host::blocked_attention_backward(team, back());
    }
};

// log-sum-exps have infinities, in the same places.
template <class A, class B>
double lse_distance(const std::vector<A>& got, const std::vector<B>& want) {
    double worst = 0;
    for (std::size_t i = 0; i < want.size(); ++i) {
        if (static_cast<double>(got[i]) == static_cast<double>(want[i])) continue;
        worst = std::max(worst, std::abs(static_cast<double>(got[i]) - static_cast<double>(want[i])));
    }
    return worst;
}

template <class T>
AttentionArgs<T> sizes(int batch, int heads, int kv_heads, int dim, int tq, int tk) {
    AttentionArgs<T> a;
    a.batch = batch, a.heads = heads, a.kv_heads = kv_heads, a.head_dim = dim;
    a.queries.capacity = tq, a.keys.capacity = tk;
    a.scale = .25;
    return a;
}

// Runs one problem in double and in float, blocked, against plain in double.
template <class Change>
void compare(int batch, int heads, int kv_heads, int dim, int tq, int tk, const Change& change) {
    auto wide = sizes<double>(batch, heads, kv_heads, dim, tq, tk);
    auto narrow = sizes<float>(batch, heads, kv_heads, dim, tq, tk);
    change(wide), change(narrow);
    problem<double> want(wide), other(wide);
    problem<float> got(narrow), again(narrow);
    want.plain();
    workers one(1), three(3);
    other.blocked(three), got.blocked(one), again.blocked(three);
    // Dead rows of gradients lie beyond the row stride's packed part too: compare where the plain form wrote.
    const auto check = [&]<class T>(const problem<T>& p, double roundings) {
        // A logit is a sum of `dim` products with size up to 8; its exponential carries its error, relatively; then a
        // sum over keys, and in the backward a difference of two such results.
        const double by = tolerance<T>(dim, roundings) * 8 + tolerance<T>(tk, roundings);
        CHECK(distance(p.o, want.o) <= by);
        CHECK(lse_distance(p.lse, want.lse) <= by);
        CHECK(distance(p.grad_q, want.grad_q) <= 4 * by);
        CHECK(distance(p.grad_k, want.grad_k) <= 4 * by);
        CHECK(distance(p.grad_v, want.grad_v) <= 4 * by);
    };
    check(other, 4);
    check(got, 4);
    CHECK((same_bits(got.o, again.o) && same_bits(got.lse, again.lse) && same_bits(got.grad_q, again.grad_q)));
    CHECK((same_bits(got.grad_k, again.grad_k) && same_bits(got.grad_v, again.grad_v)));
}

}  // namespace

TEST_CASE("blocked attention equals the plain form", "[attention]") {
    sdepth::on_host::prepare_products();
    SECTION("causal, grouped heads, tails") {
        for (const int rows : {2, 5, 64, 65, 150}) compare(2, 4, 2, 16, rows, rows, [](auto&) {});
    }
    SECTION("full, more queries than keys") {
        compare(1, 3, 1, 9, 70, 6, [](auto& a) { a.causal = false; });
    }
    SECTION("causal, more keys than queries, window, strides") {
        compare(2, 2, 2, 8, 70, 133, [](auto& a) { a.window = 20, a.q_row = 19, a.kv_row = 17; });
    }
    SECTION("causal, fewer keys than queries: the first rows see nothing") {
        compare(1, 2, 1, 8, 100, 30, [](auto&) {});
    }
    SECTION("ranges, rows that see nothing, live rows") {
        std::vector<int> first, last;
        for (int i = 0; i < 3 * 80; ++i) {
            first.push_back(i % 7 == 3 ? 9 : i % 80 / 3);
            last.push_back(i % 7 == 3 ? 8 : i % 80 / 2 + 1);
        }
        const std::vector<int> live_q{80, 0, 70}, live_k{50, 50, 33};
        compare(3, 2, 1, 8, 80, 50, [&](auto& a) {
            a.first = first.data(), a.last = last.data(), a.queries.live = live_q.data(), a.keys.live = live_k.data();
        });
    }
    SECTION("a whole block that sees nothing") {
        const std::vector<int> first(130, 1), last(130, 0);
        compare(1, 1, 1, 4, 130, 10, [&](auto& a) { a.first = first.data(), a.last = last.data(); });
    }
}

TEST_CASE("blocked attention takes a joint log-sum-exp", "[attention]") {
    auto a = sizes<double>(1, 2, 1, 8, 70, 70);
    problem<double> plain(a), blocked(a);
    workers team(2);
    sdepth::on_host::attention_forward(plain.args);
    for (double& x : plain.o) x *= .5;
    for (double& x : plain.lse) x += .7;
    blocked.o = plain.o, blocked.lse = plain.lse;
    sdepth::on_host::attention_backward(plain.back());
    sdepth::on_host::blocked_attention_backward(team, blocked.back());
    CHECK(distance(blocked.grad_q, plain.grad_q) <= 16 * tolerance<double>(70, 4));
    CHECK(distance(blocked.grad_k, plain.grad_k) <= 16 * tolerance<double>(70, 4));
    CHECK(distance(blocked.grad_v, plain.grad_v) <= 16 * tolerance<double>(70, 4));
}
