// SPDX-License-Identifier: MIT
// MoDA's depth kernels against the host oracle in fp64.
#include "depth_attention.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <string>
#include <vector>

#include "attention_roundings.hpp"
#include "numbers.hpp"
#include "sdepth/kernels/host/depth_attention.hpp"
#include "support/catch.hpp"

namespace sdepth_test {

namespace {

struct depth_case {
    std::string name;
    int batch, tokens, heads, kv_heads, dim, slots, used;
    bool masked = false, live = false;
    slot_gradients how = slot_gradients::at_once;
    int rows = 0;  // that have slots, of which the tokens are some; 0: each is a token
    int gap_begin = 0, gap_end = 0;
    bool wide = false;  // rows of q further apart than their data
};

depth_inputs draw(const depth_case& c, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    depth_inputs in;
    auto& a = in.args;
    a.batch = c.batch, a.heads = c.heads, a.kv_heads = c.kv_heads, a.head_dim = c.dim;
    a.tokens.capacity = c.tokens, a.slots = c.slots, a.used = c.used, a.scale = 1 / std::sqrt(double(c.dim));
    a.sequence = c.rows, a.q_row = c.wide ? (c.heads + 1) * c.dim : 0;
    in.how = c.how, in.gap_begin = c.gap_begin, in.gap_end = c.gap_end;
    const int rows = c.rows > 0 ? c.rows : c.tokens;
    const std::size_t tokens = count(c.batch, c.tokens, 1), row = count(1, c.heads, c.dim);
    in.q = normal(count(c.batch, c.tokens, a.q_stride()), random), in.grad_q = normal(in.q.size(), random);
    in.o = normal(tokens * row, random), in.grad_o = normal(tokens * row, random);
    in.lse = normal(tokens * count(1, c.heads, 1), random);
    in.slot = normal(count(c.batch, rows, 1) * count(c.slots, c.kv_heads, 2 * c.dim), random);
    if (c.how == slot_gradients::added) in.slot_sum = normal_fp32(in.slot.size(), random);
    // A token whose sequence branch saw nothing.
    for (int h = 0; h < c.heads; ++h) in.lse[std::size_t(h)] = -std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < row; ++i) in.o[i] = 0;

    for (int b = 0; c.live && b < c.batch; ++b)
        in.live.push_back(b == 1 ? 0 : c.tokens - int(random() % unsigned(c.tokens)));
    const auto live = [&](int token) {
        return in.live.empty() || token % c.tokens < in.live[std::size_t(token / c.tokens)];
    };
    for (int b = 0; c.rows > 0 && b < c.batch; ++b) {
        std::vector<int> chosen(std::size_t(c.rows));
        std::iota(chosen.begin(), chosen.end(), 0);
        std::shuffle(chosen.begin(), chosen.end(), random);
        in.ids.insert(in.ids.end(), chosen.begin(), chosen.begin() + c.tokens);
    }
    // Slots that nobody is to read are NaN.
    std::vector<bool> used(count(c.batch, rows, c.slots));
    if (c.masked)
        for (std::size_t i = 0; i < used.size(); ++i) in.mask.push_back(random() % 3 != 0);
    for (int slot = 0; c.masked && slot < c.slots; ++slot)  // none for the first token
        in.mask[in.row(0) * std::size_t(c.slots) + std::size_t(slot)] = 0;
    for (int token = 0; token < c.batch * c.tokens; ++token)
        for (int slot = 0; live(token) && slot < c.slots; ++slot) {
            const std::size_t at = in.row(token) * std::size_t(c.slots) + std::size_t(slot);
            used[at] = in.reads(slot) && (in.mask.empty() || in.mask[at] != 0);
        }
    for (std::size_t i = 0; i < in.slot.size(); ++i)
        if (!used[i / count(1, c.kv_heads, 2 * c.dim)]) in.slot[i] = nan;
    for (int token = 0; c.rows > 0 && token < c.batch * c.tokens; ++token)
        if (!live(token)) in.ids[std::size_t(token)] = 1 << 28;
    return in;
}

// Variances and lse's bounds, see attention_roundings.hpp. The sequence branch enters in fp32.
depth_outputs roundings(const depth_inputs& in, const depth_outputs& between) {
    const auto& a = in.args;
    const int h = a.head_dim, group = a.heads / a.kv_heads;
    depth_outputs s{std::vector<double>(in.o.size()), std::vector<double>(in.lse.size()),
                    std::vector<double>(in.q.size()), std::vector<double>(in.slot.size())};
    const double readings = in.how == slot_gradients::later ? 3 : 1;  // of the same P and dS, which add up
    for (int t = 0; t < a.batch * a.tokens.capacity; ++t) {
        const int b = t / a.tokens.capacity;
        if (!in.live.empty() && t % a.tokens.capacity >= in.live[std::size_t(b)]) continue;
        // Gradients that are summed later are those of tokens, not of rows.
        const std::size_t grad_row = in.how == slot_gradients::later ? std::size_t(t) : in.row(t);
        for (int head = 0; head < a.heads; ++head) {
            const std::size_t at_lse = count(t, 1, a.heads) + std::size_t(head), at = at_lse * std::size_t(h);
            const std::size_t at_q = count(t, 1, a.q_stride()) + count(head, 1, h);
            const double *const q = &in.q[at_q], *const dy = &in.grad_o[at], lse = in.joint_lse[at_lse];
            const product_sum drop(&in.joint_o[at], dy, h);
            double logits = 0;
            for (int slot = 0; slot < a.used; ++slot) {
                const std::size_t row = in.row(t) * std::size_t(a.slots) + std::size_t(slot);
                if (!in.reads(slot) || (!in.mask.empty() && in.mask[row] == 0)) continue;
                const auto key_at = [&](std::size_t of) {
                    return ((of * std::size_t(a.slots) + std::size_t(slot)) * std::size_t(a.kv_heads) +
                            std::size_t(head / group)) *
                           std::size_t(2 * h);
                };
                const double *const k = &in.slot[key_at(in.row(t))], *const v = k + h;
                const pair_roundings off(q, k, v, dy, h, a.scale, lse, drop);
                add_variance(&s.o[at], off.p, v, h), add_variance(&s.grad_q[at_q], off.ds, k, h);
                double* const grad = &s.grad_slot[key_at(grad_row)];
                add_variance(grad, readings * off.ds, q, h), add_variance(grad + h, readings * off.p, dy, h);
                logits = std::max(logits, a.scale * off.logit.norm);
            }
            if (lse > -std::numeric_limits<double>::infinity())
                s.lse[at_lse] = lse_bound(lse, logits, std::max(h, a.used));
            if (in.gap_begin == 0) continue;
            // The second call begins with what the first one rounded.
            const double share = std::exp(between.lse[at_lse] - lse);
            if (std::isfinite(share)) add_variance(&s.o[at], bf16_rounding * share, &between.o[at], h);
            add_variance(&s.grad_q[at_q], bf16_rounding, &between.grad_q[at_q], h);
            s.lse[at_lse] *= 2;
        }
    }
    return s;
}

// Also gives what the first of two calls leaves.
depth_outputs depth_on_host(depth_inputs& in, depth_outputs& between) {
    sdepth::on_host::workers team(1);
    in.joint_o = in.o, in.joint_lse = in.lse;
    depth_outputs out{{}, {}, in.grad_q, std::vector<double>(in.slot.size(), nan)};
    if (in.how == slot_gradients::added) out.grad_slot = in.slot_sum;
    sdepth::DepthAttentionBackwardArgs<double> g;
    auto& a = g.forward;
    a = in.args;
    a.q = in.q.data(), a.slot = in.slot.data(), a.mask = in.mask.empty() ? nullptr : in.mask.data();
    a.tokens.live = in.live.empty() ? nullptr : in.live.data();
    a.ids = in.ids.empty() ? nullptr : in.ids.data();
    a.o = in.joint_o.data(), a.lse = in.joint_lse.data();
    for_each_range(in, g, [&](const auto& call, int from, int) {
        if (from > 0) between.o = in.joint_o, between.lse = in.joint_lse;
        sdepth::on_host::depth_attention_forward(team, call.forward);
    });
    out.o = in.joint_o, out.lse = in.joint_lse;
    // Both backwards start from the joint output as bf16 holds it, else D differs.
    for (double& x : in.joint_o) x = rounded(x);
    std::vector<double> p(in.lse.size() * std::size_t(a.slots)), ds(p.size());
    g.grad_o = in.grad_o.data(), g.grad_q = out.grad_q.data(), g.p = p.data(), g.ds = ds.data();
    if (in.how == slot_gradients::at_once) g.grad_slot = out.grad_slot.data();
    if (in.how == slot_gradients::added) g.slot_sum = out.grad_slot.data();
    for_each_range(in, g, [&](const auto& call, int from, int to) {
        if (from > 0) between.grad_q = out.grad_q;
        sdepth::on_host::depth_attention_backward(team, call);
        if (in.how == slot_gradients::later)
            sdepth::on_host::depth_slot_gradients(team, read_three_times(g, from, to, out.grad_slot.data()));
    });
    return out;
}

void check_case(const depth_case& c) {
    INFO(c.name << ", d" << c.dim);
    depth_inputs in = draw(c, test_seed());
    depth_outputs between;
    const depth_outputs want = depth_on_host(in, between), got = depth_on_device(in);
    const depth_outputs of = roundings(in, between);
    check_roundings("o", got.o, want.o, of.o);
    check_within("lse", got.lse, want.lse, of.lse);
    check_roundings("grad_q", got.grad_q, want.grad_q, of.grad_q);
    const bool added = c.how == slot_gradients::added;
    check_roundings(added ? "slot_sum" : "grad_slot", got.grad_slot, want.grad_slot, of.grad_slot,
                    added ? 0x1p-24 : bf16_rounding);
    bool kept = true;  // sums of slots that nobody reads
    for (std::size_t i = 0; added && i < want.grad_slot.size(); ++i)
        kept &= of.grad_slot[i] != 0 || got.grad_slot[i] == in.slot_sum[i];
    CHECK(kept);
    const depth_outputs again = depth_on_device(in);
    CHECK(same_bits(got.o, again.o));
    CHECK(same_bits(got.lse, again.lse));
    CHECK(same_bits(got.grad_q, again.grad_q));
    CHECK(same_bits(got.grad_slot, again.grad_slot));
}

constexpr slot_gradients later = slot_gradients::later, added = slot_gradients::added;

}  // namespace

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
                 {"rows apart", 2, 31, 8, 2, dim, 10, 10, false, true, {}, 0, 0, 0, true},
                 {"two ranges", 2, 31, 8, 2, dim, 40, 38, true, false, {}, 0, 7, 20},
                 {"a range that does not begin at 0", 2, 31, 8, 2, dim, 40, 38, true, true, {}, 0, 0, 20},
                 {"masked slots, dead tokens, summed later", 3, 29, 8, 2, dim, 40, 37, true, true, later},
                 {"two ranges, summed later", 3, 29, 8, 2, dim, 40, 37, true, true, later, 0, 3, 17},
                 {"group of sixteen, summed later", 1, 30, 16, 1, dim, 18, 18, false, false, later},
                 {"added", 2, 31, 8, 2, dim, 70, 66, false, false, added},
                 {"masked slots, dead tokens, added", 3, 29, 8, 2, dim, 40, 37, true, true, added},
                 {"group of sixteen, added", 1, 30, 16, 1, dim, 18, 18, false, false, added},
                 {"tokens by ids", 2, 40, 8, 2, dim, 12, 12, false, false, added, 90},
                 {"tokens by ids, summed later", 2, 40, 8, 2, dim, 12, 11, true, true, later, 90},
                 {"tokens by ids, masked slots, dead tokens", 3, 60, 16, 2, dim, 40, 37, true, true, added, 60},
                 {"tokens by ids, two ranges, rows apart", 3, 60, 6, 2, dim, 90, 81, true, true, added, 77, 5, 13,
                  true},
                 {"several tasks a warp", 1, 2000, 8, 2, dim, 8, 8},
                 {"several tasks a warp, masked slots", 2, 1500, 6, 2, dim, 9, 7, true, true},
                 {"several tasks a warp, tokens by ids", 2, 1500, 6, 2, dim, 9, 7, true, true, added, 1700},
             })
            check_case(c);
}
TEST_CASE("depth attention on small shapes equals the oracle", "[depth_attention][small]") {
    for (const int dim : {64, 128}) {
        for (const slot_gradients how : {slot_gradients::at_once, later, added}) {
            check_case({"masked slots, dead tokens", 3, 9, 6, 2, dim, 40, 37, true, true, how});
            check_case({"group of sixteen", 1, 7, 16, 1, dim, 18, 18, false, false, how});
        }
        check_case({"tokens by ids, two ranges", 3, 9, 6, 2, dim, 40, 37, true, true, added, 14, 3, 18});
    }
}
TEST_CASE("depth attention without slots leaves everything as it was", "[depth_attention][hopper]") {
    depth_inputs in = draw({"none", 2, 9, 4, 2, 64, 3, 0}, test_seed());
    in.joint_o = in.o, in.joint_lse = in.lse;
    const depth_outputs got = depth_on_device(in);
    CHECK(same_bits(got.o, in.o));
    CHECK(same_bits(got.grad_q, in.grad_q));
    CHECK(same_bits(got.lse, in.lse));
}

}  // namespace sdepth_test
