// SPDX-License-Identifier: MIT
// MoDA's depth kernels against the host oracle in fp64.
#include "depth_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "attention_roundings.hpp"
#include "numbers.hpp"
#include "sdepth/kernels/host/depth_attention.hpp"
#include "support/catch.hpp"

namespace sdepth_test {

namespace {

struct depth_case {
    std::string name;
    int batch, tokens, heads, kv_heads, dim, slots, used;
    bool masked = false, live = false, at_once = true;
};

depth_inputs draw(const depth_case& c, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    depth_inputs in;
    auto& a = in.args;
    a.batch = c.batch, a.heads = c.heads, a.kv_heads = c.kv_heads, a.head_dim = c.dim;
    a.tokens.capacity = c.tokens, a.slots = c.slots, a.used = c.used, a.scale = 1 / std::sqrt(double(c.dim));
    const std::size_t tokens = count(c.batch, c.tokens, 1), row = count(1, c.heads, c.dim);
    in.q = normal(tokens * row, random), in.o = normal(tokens * row, random), in.grad_o = normal(tokens * row, random);
    in.grad_q = normal(tokens * row, random), in.lse = normal(tokens * count(1, c.heads, 1), random);
    in.slot = normal(tokens * count(c.slots, c.kv_heads, 2 * c.dim), random);
    in.at_once = c.at_once;
    // A token whose sequence branch saw nothing.
    for (int h = 0; h < c.heads; ++h) in.lse[std::size_t(h)] = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < row; ++i) in.o[i] = 0;
    const auto kill = [&](std::size_t token, int slot) {
        const std::size_t n = count(1, c.kv_heads, 2 * c.dim),
                          at = (token * std::size_t(c.slots) + std::size_t(slot)) * n;
        for (std::size_t i = 0; i < n; ++i) in.slot[at + i] = nan;
    };
    if (c.masked)
        for (std::size_t i = 0; i < tokens * std::size_t(c.slots); ++i) {
            in.mask.push_back(random() % 3 != 0 && i >= std::size_t(c.slots));  // none for the first token
            if (in.mask.back() == 0) kill(i / std::size_t(c.slots), int(i % std::size_t(c.slots)));
        }
    if (c.live)
        for (int b = 0; b < c.batch; ++b) {
            in.live.push_back(b == 1 ? 0 : c.tokens - int(random() % unsigned(c.tokens)));
            for (int t = in.live.back(); t < c.tokens; ++t)
                for (int s = 0; s < c.slots; ++s) kill(std::size_t(b * c.tokens + t), s);
        }
    return in;
}

// Variances and lse's bounds, see attention_roundings.hpp. The sequence branch enters in fp32.
depth_outputs roundings(const depth_inputs& in) {
    const auto& a = in.args;
    const int h = a.head_dim, group = a.heads / a.kv_heads;
    depth_outputs s{std::vector<double>(in.o.size()), std::vector<double>(in.lse.size()),
                    std::vector<double>(in.q.size()), std::vector<double>(in.slot.size())};
    const double readings = in.at_once ? 1 : 2;  // of the same P and dS, which add up
    for (int t = 0; t < a.batch * a.tokens.capacity; ++t) {
        const int b = t / a.tokens.capacity;
        if (!in.live.empty() && t % a.tokens.capacity >= in.live[std::size_t(b)]) continue;
        for (int head = 0; head < a.heads; ++head) {
            const std::size_t at_lse = count(t, 1, a.heads) + std::size_t(head), at = at_lse * std::size_t(h);
            const double *const q = &in.q[at], *const dy = &in.grad_o[at], lse = in.joint_lse[at_lse];
            const product_sum drop(&in.joint_o[at], dy, h);
            double logits = 0;
            for (int slot = 0; slot < a.used; ++slot) {
                const std::size_t row = count(t, 1, a.slots) + std::size_t(slot);
                if (!in.mask.empty() && in.mask[row] == 0) continue;
                const std::size_t key =
                    (row * std::size_t(a.kv_heads) + std::size_t(head / group)) * std::size_t(2 * h);
                const double *const k = &in.slot[key], *const v = k + h;
                const pair_roundings off(q, k, v, dy, h, a.scale, lse, drop);
                add_variance(&s.o[at], off.p, v, h), add_variance(&s.grad_q[at], off.ds, k, h);
                add_variance(&s.grad_slot[key], readings * off.ds, q, h);
                add_variance(&s.grad_slot[key] + h, readings * off.p, dy, h);
                logits = std::max(logits, a.scale * off.logit.norm);
            }
            if (lse > -std::numeric_limits<double>::infinity())
                s.lse[at_lse] = lse_bound(lse, logits, std::max(h, a.used));
        }
    }
    return s;
}

void check_case(const depth_case& c) {
    INFO(c.name << ", d" << c.dim);
    depth_inputs in = draw(c, test_seed());
    const depth_outputs want = depth_on_host(in), got = depth_on_device(in);
    const depth_outputs of = roundings(in);
    check_roundings("o", got.o, want.o, of.o);
    check_within("lse", got.lse, want.lse, of.lse);
    check_roundings("grad_q", got.grad_q, want.grad_q, of.grad_q);
    check_roundings("grad_slot", got.grad_slot, want.grad_slot, of.grad_slot);
    const depth_outputs again = depth_on_device(in);
    CHECK(same_bits(got.o, again.o));
    CHECK(same_bits(got.lse, again.lse));
    CHECK(same_bits(got.grad_q, again.grad_q));
    CHECK(same_bits(got.grad_slot, again.grad_slot));
}

}  // namespace

depth_outputs depth_on_host(depth_inputs& in) {
    sdepth::on_host::workers team(1);
    auto a = in.args;
    in.joint_o = in.o, in.joint_lse = in.lse;
    depth_outputs out{{}, {}, in.grad_q, std::vector<double>(in.slot.size(), nan)};
    a.q = in.q.data(), a.slot = in.slot.data(), a.mask = in.mask.empty() ? nullptr : in.mask.data();
    a.tokens.live = in.live.empty() ? nullptr : in.live.data();
    a.o = in.joint_o.data(), a.lse = in.joint_lse.data();
    sdepth::on_host::depth_attention_forward(team, a);
    out.o = in.joint_o, out.lse = in.joint_lse;
    // Both backwards start from the joint output as bf16 holds it, else D differs.
    for (double& x : in.joint_o) x = rounded(x);
    std::vector<double> p(in.lse.size() * std::size_t(a.slots)), ds(p.size());
    sdepth::on_host::depth_attention_backward<double>(
        team,
        {a, in.grad_o.data(), out.grad_q.data(), in.at_once ? out.grad_slot.data() : nullptr, p.data(), ds.data()});
    if (in.at_once) return out;
    sdepth::DepthSlotGradientArgs<double> g;
    g.batch = a.batch, g.heads = a.heads, g.kv_heads = a.kv_heads, g.head_dim = a.head_dim, g.tokens = a.tokens;
    g.slots = a.slots, g.scale = a.scale, g.begin = 0, g.end = a.used, g.readers = 2;
    g.reads[0] = g.reads[1] = {a.q, in.grad_o.data(), p.data(), ds.data()};
    g.grad_slot = out.grad_slot.data();
    sdepth::on_host::depth_slot_gradients(team, g);
    return out;
}

TEST_CASE("depth attention equals the oracle", "[depth_attention][hopper]") {
    for (const int dim : {64, 128})
        for (const auto& c : std::vector<depth_case>{
                 {"one slot", 1, 3, 2, 1, dim, 1, 1},
                 {"fewer used than there are", 2, 37, 4, 2, dim, 9, 5},
                 {"a full chunk", 1, 50, 16, 2, dim, 64, 64},
                 {"over a chunk", 1, 40, 8, 1, dim, 73, 71},
                 {"group of three", 2, 30, 6, 2, dim, 20, 20},
                 {"group of sixteen", 1, 30, 32, 2, dim, 20, 19},
                 {"group of twelve, over a chunk", 1, 30, 12, 1, dim, 70, 66},
                 {"masked slots", 2, 33, 8, 2, dim, 24, 23, true},
                 {"dead tokens", 3, 29, 8, 2, dim, 12, 12, false, true},
                 {"masked slots, dead tokens, summed later", 3, 29, 8, 2, dim, 40, 37, true, true, false},
                 {"group of sixteen, summed later", 1, 30, 16, 1, dim, 18, 18, false, false, false},
                 {"several tasks a warp", 1, 2000, 8, 2, dim, 8, 8},
                 {"several tasks a warp, masked slots", 2, 1500, 6, 2, dim, 9, 7, true, true},
             })
            check_case(c);
}
TEST_CASE("depth attention on small shapes equals the oracle", "[depth_attention][small]") {
    for (const int dim : {64, 128})
        for (const bool at_once : {true, false}) {
            check_case({"masked slots, dead tokens", 3, 9, 6, 2, dim, 40, 37, true, true, at_once});
            check_case({"group of sixteen", 1, 7, 16, 1, dim, 18, 18, false, false, at_once});
        }
}

}  // namespace sdepth_test
