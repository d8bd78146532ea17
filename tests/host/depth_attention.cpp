// SPDX-License-Identifier: MIT
// MoDA's depth branch on the host: worked examples, the joint softmax, finite differences through both branches.
#include "sdepth/kernels/host/depth_attention.hpp"

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "support/catch.hpp"

namespace {

using namespace sdepth;
using vec = std::vector<double>;

on_host::workers team(1);

// Sequence and depth together: q, k, v of one layer, slots of earlier ones.
struct problem {
    AttentionArgs<double> seq;
    DepthAttentionArgs<double> depth;
    vec q, k, v, slot, o, lse, grad_o, grad_q, grad_k, grad_v, grad_slot, p, ds;

    problem(int batch, int tokens, int heads, int kv_heads, int dim, int slots, int used, unsigned seed) {
        std::mt19937_64 random(seed);
        std::normal_distribution<double> draw;
        const auto fill = [&](vec& x, int n) {
            x.resize(static_cast<std::size_t>(n));
            for (double& e : x) e = draw(random);
        };
        seq.batch = depth.batch = batch, seq.heads = depth.heads = heads, seq.kv_heads = depth.kv_heads = kv_heads;
        seq.head_dim = depth.head_dim = dim, seq.scale = depth.scale = .6;
        seq.queries.capacity = seq.keys.capacity = depth.tokens.capacity = tokens;
        depth.slots = slots, depth.used = used;
        fill(q, batch * tokens * heads * dim), fill(grad_o, batch * tokens * heads * dim);
        fill(k, batch * tokens * kv_heads * dim), fill(v, batch * tokens * kv_heads * dim);
        fill(slot, batch * tokens * slots * kv_heads * 2 * dim);
        o = grad_q = q, lse.resize(static_cast<std::size_t>(batch * tokens * heads)), grad_k = k, grad_v = v,
        grad_slot = slot;
        p.resize(static_cast<std::size_t>(batch * tokens * slots * heads)), ds = p;
        seq.q = depth.q = q.data(), seq.k = k.data(), seq.v = v.data(), depth.slot = slot.data();
        seq.o = depth.o = o.data(), seq.lse = depth.lse = lse.data();
    }
    double loss() {
        on_host::attention_forward(seq);
        on_host::depth_attention_forward(team, depth);
        double sum = 0;
        for (std::size_t i = 0; i < o.size(); ++i) sum += o[i] * grad_o[i];
        return sum;
    }
    void backward() {
        on_host::attention_backward<double>({seq, grad_o.data(), grad_q.data(), grad_k.data(), grad_v.data()});
        on_host::depth_attention_backward<double>(
            team, {depth, grad_o.data(), grad_q.data(), grad_slot.data(), p.data(), ds.data()});
    }
    double worst_slope_error(vec& x, const vec& grad) {
        double worst = 0;
        for (std::size_t i = 0; i < x.size(); i += 3) {
            const double keep = x[i], step = 1e-5;
            x[i] = keep + step;
            const double up = loss();
            x[i] = keep - step;
            const double down = loss();
            x[i] = keep;
            worst = std::max(worst, std::abs((up - down) / (2 * step) - grad[i]));
        }
        return worst;
    }
};

}  // namespace

TEST_CASE("joint gradients agree with finite differences", "[depth_attention]") {
    problem p(2, 4, 4, 2, 5, 3, 3, 1);
    const std::vector<std::uint8_t> mask{1, 0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1, 1, 1, 0, 1, 1, 1, 1, 0, 0, 0, 1};
    p.depth.mask = mask.data();
    p.loss();
    p.backward();
    CHECK(p.worst_slope_error(p.q, p.grad_q) < 1e-8);
    CHECK(p.worst_slope_error(p.k, p.grad_k) < 1e-8);
    CHECK(p.worst_slope_error(p.v, p.grad_v) < 1e-8);
    CHECK(p.worst_slope_error(p.slot, p.grad_slot) < 1e-8);
}

TEST_CASE("the joint softmax is one softmax", "[depth_attention]") {
    // Position 3 with 4 slots normalises over 7 (three keys before it end at position 2 in zero-based rows); with equal
    // logits the depth mass is 4/7.
    problem p(1, 3, 1, 1, 1, 4, 4, 2);
    for (double& x : p.q) x = 0;
    for (double& x : p.v) x = 0;
    for (std::size_t i = 1; i < p.slot.size(); i += 2) p.slot[i] = 1;
    p.loss();
    CHECK(std::abs(p.o[2] - 4. / 7) < 1e-15);
    CHECK(std::abs(p.lse[2] - std::log(7.)) < 1e-15);
    CHECK(std::abs(p.o[0] - 4. / 5) < 1e-15);
}

TEST_CASE("no slots leave attention bit for bit", "[depth_attention]") {
    problem p(1, 5, 2, 1, 4, 3, 0, 3);
    on_host::attention_forward(p.seq);
    const vec o = p.o, lse = p.lse;
    p.loss();
    CHECK(p.o == o);
    CHECK(p.lse == lse);
    p.depth.used = 3;
    const std::vector<std::uint8_t> none(15, 0);
    p.depth.mask = none.data();
    p.slot.assign(p.slot.size(), std::numeric_limits<double>::quiet_NaN());
    p.loss();
    CHECK(p.o == o);
}

TEST_CASE("slots of other tokens do not matter", "[depth_attention]") {
    problem p(1, 3, 2, 2, 2, 2, 2, 4);
    p.loss();
    const vec o = p.o;
    for (std::size_t i = 2 * 2 * 2 * 2; i < p.slot.size(); ++i) p.slot[i] += 1;
    p.loss();
    for (std::size_t i = 0; i < 4; ++i) CHECK(p.o[i] == o[i]);
    CHECK(p.o[4] != o[4]);
}

TEST_CASE("summing later over two readers equals adding at once", "[depth_attention]") {
    problem a(2, 3, 4, 2, 3, 4, 3, 5), b(2, 3, 4, 2, 3, 4, 4, 6);
    b.slot = a.slot, b.depth.slot = b.slot.data();
    a.loss(), a.backward(), b.loss(), b.backward();
    DepthSlotGradientArgs<double> g;
    g.batch = 2, g.heads = 4, g.kv_heads = 2, g.head_dim = 3, g.tokens.capacity = 3, g.slots = 4, g.scale = .6;
    g.begin = 1, g.end = 3, g.readers = 2;
    g.reads[0] = {a.q.data(), a.grad_o.data(), a.p.data(), a.ds.data()};
    g.reads[1] = {b.q.data(), b.grad_o.data(), b.p.data(), b.ds.data()};
    vec sum(a.slot.size());
    g.grad_slot = sum.data();
    on_host::depth_slot_gradients(team, g);
    for (std::size_t token = 0; token < 6; ++token)
        for (std::size_t i = 12; i < 36; ++i)
            CHECK(std::abs(sum[token * 48 + i] - a.grad_slot[token * 48 + i] - b.grad_slot[token * 48 + i]) < 1e-14);
}

TEST_CASE("sizes of slots are checked", "[depth_attention]") {
    problem p(1, 1, 1, 1, 1, 2, 2, 7);
    p.depth.used = 3;
    CHECK_THROWS_AS(on_host::depth_attention_forward(team, p.depth), sdepth::error);
}
