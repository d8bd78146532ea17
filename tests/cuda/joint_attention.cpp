// SPDX-License-Identifier: MIT
// MoDA's chain on the GPU against one softmax over both sets of keys in fp64: attention, slots merged into its o and
// lse, then both backwards from the joint ones.
#include <cmath>
#include <string>
#include <vector>

#include "attention.hpp"
#include "attention_roundings.hpp"
#include "depth_attention.hpp"
#include "numbers.hpp"
#include "sdepth/kernels/host/attention.hpp"
#include "support/catch.hpp"

namespace sdepth_test {

namespace {

constexpr int slots = 11, used = 9;

// What the chain leaves, or bounds of it.
struct joint_outputs {
    attention_outputs sequence;  // o and lse the joint ones, grad_q the whole one
    std::vector<double> grad_slot;
};

depth_inputs draw_slots(const attention_inputs& in) {
    std::mt19937_64 random(test_seed());
    depth_inputs depth;
    const auto& s = in.args;
    auto& a = depth.args;
    a.batch = s.batch, a.heads = s.heads, a.kv_heads = s.kv_heads, a.head_dim = s.head_dim, a.scale = s.scale;
    a.tokens.capacity = s.queries.capacity, a.slots = slots, a.used = used;
    const std::size_t token = count(slots, s.kv_heads, 2 * s.head_dim);
    depth.q = in.q, depth.grad_o = in.grad_o, depth.live = in.live_queries;
    depth.slot = normal(count(s.batch, s.queries.capacity, 1) * token, random);
    for (std::size_t i = 0; i < count(s.batch, s.queries.capacity, slots); ++i) depth.mask.push_back(random() % 4 != 0);
    return depth;
}

struct chain {
    attention_outputs apart;  // of the sequence alone
    std::vector<double> sequence_grad_q;
    joint_outputs joint;
};
chain on_device(attention_inputs in, depth_inputs depth, kernels by) {
    chain x;
    x.apart = attention_on_device(in, by);
    depth.o = x.apart.o, depth.lse = x.apart.lse;
    depth.joint_o = depth.o, depth.joint_lse = depth.lse, depth.grad_q = x.apart.grad_q;  // not looked at
    const depth_outputs merged = depth_on_device(depth);
    in.joint_o = merged.o, in.joint_lse = merged.lse;
    x.joint.sequence = attention_on_device(in, by);
    x.sequence_grad_q = x.joint.sequence.grad_q;
    depth.joint_o = merged.o, depth.joint_lse = merged.lse, depth.grad_q = x.sequence_grad_q;
    const depth_outputs last = depth_on_device(depth);
    x.joint.sequence.o = merged.o, x.joint.sequence.lse = merged.lse, x.joint.sequence.grad_q = last.grad_q;
    x.joint.grad_slot = last.grad_slot;
    return x;
}

// Every query as a sequence of its own, whose keys are those of the sequence that it sees and its slots.
class one_softmax {
  public:
    one_softmax(const attention_inputs& in, const depth_inputs& depth) : in_(in), depth_(depth), args_(in.args) {
        const auto& s = in.args;
        const int tokens = s.queries.capacity, keys = s.keys.capacity, row = s.kv_heads * s.head_dim;
        args_.batch = s.batch * tokens, args_.queries = {1, nullptr}, args_.causal = false, args_.window = 0;
        args_.keys.capacity = keys + used;
        k_.assign(count(args_.batch, args_.keys.capacity, row), 0), v_ = k_;
        for (int t = 0; t < args_.batch; ++t) {
            const int b = t / tokens, i = t % tokens;
            const int live = in.live_queries.empty() ? tokens : in.live_queries[std::size_t(b)];
            const int live_keys = in.live_keys.empty() ? keys : in.live_keys[std::size_t(b)];
            const std::size_t at = count(b, tokens, 1);
            const auto see =
                sdepth::visible_keys(i, live, live_keys, s.causal, s.window, in.first.empty() ? nullptr : &in.first[at],
                                     in.last.empty() ? nullptr : &in.last[at]);
            std::vector<std::size_t> of_k, of_slot;
            for (int j = see.first; j <= see.last; ++j) of_k.push_back(count(b, keys, row) + count(j, 1, row));
            for (int j = 0; i < live && j < used; ++j)
                if (depth.mask[count(t, slots, 1) + std::size_t(j)] != 0)
                    of_slot.push_back((count(t, slots, 1) + std::size_t(j)) * std::size_t(2 * row));
            live_queries_.push_back(i < live), live_keys_.push_back(int(of_k.size() + of_slot.size()));
            from_k_.push_back(of_k), from_slot_.push_back(of_slot);
        }
        each(
            [&](double& k, double& v, std::size_t at_k, std::size_t at_v, bool is_slot) {
                k = is_slot ? depth.slot[at_k] : in.k[at_k], v = is_slot ? depth.slot[at_v] : in.v[at_v];
            },
            k_, v_);
        args_.q = in.q.data(), args_.k = k_.data(), args_.v = v_.data();
        args_.queries.live = live_queries_.data(), args_.keys.live = live_keys_.data();
    }
    joint_outputs from(const attention_outputs& at) {
        attention_outputs y{std::vector<double>(in_.grad_o.size(), nan), std::vector<double>(at.lse.size(), nan),
                            std::vector<double>(in_.q.size(), nan), std::vector<double>(k_.size(), nan),
                            std::vector<double>(k_.size(), nan)};
        sdepth::on_host::attention_forward(with(y));
        attention_outputs begin = at;
        sdepth::on_host::attention_backward<double>(
            {with(begin), in_.grad_o.data(), y.grad_q.data(), y.grad_k.data(), y.grad_v.data()});
        return back(y);
    }
    joint_outputs roundings(attention_outputs at) { return back(attention_roundings(with(at), in_.grad_o.data())); }

  private:
    // f(k, v, where k comes from, where v, whether it is a slot) for each number of a key and its value.
    template <class F>
    void each(F f, std::vector<double>& k, std::vector<double>& v) const {
        const int h = args_.head_dim, row = args_.kv_heads * h;
        for (std::size_t t = 0; t < from_k_.size(); ++t) {
            std::size_t to = t * count(1, args_.keys.capacity, row);
            for (const std::size_t at : from_k_[t])
                for (std::size_t c = 0; c < std::size_t(row); ++c, ++to) f(k[to], v[to], at + c, at + c, false);
            for (const std::size_t at : from_slot_[t])
                for (std::size_t c = 0; c < std::size_t(row); ++c, ++to) {
                    const std::size_t there = at + c / std::size_t(h) * std::size_t(2 * h) + c % std::size_t(h);
                    f(k[to], v[to], there, there + std::size_t(h), true);
                }
        }
    }
    // Gradients, or variances, of keys and slots as the sum over those who saw them.
    joint_outputs back(attention_outputs y) const {
        joint_outputs x{y, std::vector<double>(depth_.slot.size(), nan)};
        x.sequence.grad_k.assign(in_.k.size(), 0), x.sequence.grad_v.assign(in_.k.size(), 0);
        const std::size_t slot = count(1, args_.kv_heads, 2 * args_.head_dim);
        for (std::size_t i = 0; i < depth_.slot.size(); ++i)
            if (int(i / slot % std::size_t(slots)) < used) x.grad_slot[i] = 0;
        each(
            [&](double& k, double& v, std::size_t at_k, std::size_t at_v, bool is_slot) {
                (is_slot ? x.grad_slot : x.sequence.grad_k)[at_k] += k;
                (is_slot ? x.grad_slot : x.sequence.grad_v)[at_v] += v;
            },
            y.grad_k, y.grad_v);
        return x;
    }
    sdepth::AttentionArgs<double> with(attention_outputs& at) const {
        auto a = args_;
        a.o = at.o.data(), a.lse = at.lse.data();
        return a;
    }

    const attention_inputs& in_;
    const depth_inputs& depth_;
    sdepth::AttentionArgs<double> args_;
    std::vector<int> live_queries_, live_keys_;
    std::vector<std::vector<std::size_t>> from_k_, from_slot_;
    std::vector<double> k_, v_;
};

void check_chain(const attention_case& c, kernels by) {
    INFO(c.name << ", d" << c.dim);
    const attention_inputs in = draw_attention(c, test_seed());
    const depth_inputs depth = draw_slots(in);
    const chain got = on_device(in, depth, by);
    one_softmax host(in, depth);
    // Both backwards start from the device's joint o and lse.
    const joint_outputs want = host.from(got.joint.sequence);
    joint_outputs of = host.roundings(got.joint.sequence);
    // The sequence's o and grad_q are rounded on the way; its lse is a sum of its own, as exact as the joint one.
    const std::size_t h = std::size_t(c.dim);
    for (std::size_t i = 0; i < of.sequence.o.size(); ++i) {
        const double share = std::exp(got.apart.lse[i / h] - got.joint.sequence.lse[i / h]);
        if (got.apart.o[i] != 0) of.sequence.o[i] += std::pow(bf16_rounding * share * got.apart.o[i], 2) / 3;
    }
    for (std::size_t i = 0; i < of.sequence.grad_q.size(); ++i)
        if (std::isfinite(got.sequence_grad_q[i]))
            of.sequence.grad_q[i] += std::pow(bf16_rounding * got.sequence_grad_q[i], 2) / 3;
    for (double& bound : of.sequence.lse) bound *= 2;
    check_roundings("o", got.joint.sequence.o, want.sequence.o, of.sequence.o);
    check_within("lse", got.joint.sequence.lse, want.sequence.lse, of.sequence.lse);
    check_roundings("grad_q", got.joint.sequence.grad_q, want.sequence.grad_q, of.sequence.grad_q);
    check_roundings("grad_k", got.joint.sequence.grad_k, want.sequence.grad_k, of.sequence.grad_k);
    check_roundings("grad_v", got.joint.sequence.grad_v, want.sequence.grad_v, of.sequence.grad_v);
    check_roundings("grad_slot", got.joint.grad_slot, want.grad_slot, of.grad_slot);
}

}  // namespace

TEST_CASE("attention and its slots are one softmax", "[attention][depth_attention][hopper]") {
    for (const int dim : {64, 128})
        for (const kernels by : {kernels::hopper, kernels::long_tile, kernels::portable})
            for (const auto& c : std::vector<attention_case>{
                     {"causal", 2, 4, 2, dim, 140, 140},
                     {"window, group of eight", 1, 8, 1, dim, 150, 150, true, 30},
                     {"rows that see only slots", 2, 4, 2, dim, 130, 130, true, 0, sight::ragged},
                     {"dead rows", 3, 4, 2, dim, 100, 100, true, 0, sight::plain, true},
                 })
                check_chain(c, by);
}

}  // namespace sdepth_test
