// SPDX-License-Identifier: MIT
// Attention kernels against the host oracle in fp64, over a sweep of shapes and visibilities.
#include "attention.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "attention_roundings.hpp"
#include "numbers.hpp"
#include "sdepth/kernels/host/attention.hpp"
#include "support/catch.hpp"

namespace sdepth_test {

namespace {

// Puts NaN into rows that hold no data.
void kill(std::vector<double>& x, int batch, const sdepth::rows& r, int stride) {
    for (int b = 0; b < batch; ++b)
        for (std::size_t i = count(1, r.of(b), stride); i < count(1, r.capacity, stride); ++i)
            x[static_cast<std::size_t>(b) * count(1, r.capacity, stride) + i] = nan;
}

}  // namespace

attention_inputs draw_attention(const attention_case& c, std::uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(std::max(n, 1))); };
    attention_inputs in;
    auto& a = in.args;
    a.batch = c.batch, a.heads = c.heads, a.kv_heads = c.kv_heads, a.head_dim = c.dim;
    a.queries.capacity = c.queries, a.keys.capacity = c.keys;
    a.scale = 1 / std::sqrt(double(c.dim)), a.causal = c.causal, a.window = c.window;
    if (c.wide) a.q_row = (c.heads + 1) * c.dim, a.kv_row = (c.kv_heads * 2 + 1) * c.dim;
    in.q = normal(count(c.batch, c.queries, a.q_stride()), random);
    in.k = normal(count(c.batch, c.keys, a.kv_stride()), random);
    in.v = normal(count(c.batch, c.keys, a.kv_stride()), random);
    in.grad_o = normal(count(c.batch, c.queries, c.heads * c.dim), random);
    if (c.live) {
        for (int b = 0; b < c.batch; ++b) {
            in.live_queries.push_back(b == 1 ? 0 : c.queries - below(c.queries));
            in.live_keys.push_back(b == 2 ? 0 : c.keys - below(c.keys));
        }
        a.queries.live = in.live_queries.data(), a.keys.live = in.live_keys.data();
        kill(in.q, c.batch, a.queries, a.q_stride());
        kill(in.k, c.batch, a.keys, a.kv_stride());
        kill(in.v, c.batch, a.keys, a.kv_stride());
        kill(in.grad_o, c.batch, a.queries, c.heads * c.dim);
    }
    for (int b = 0; c.kind != sight::plain && b < c.batch; ++b) {
        int start = 0, position = 0;  // of the document; of the last query in the whole sequence
        for (int i = 0; i < c.queries; ++i) {
            if (below(70) == 0) start = i;
            position = std::min(c.keys - 1, position + 1 + below(2 * c.keys / c.queries));
            const int u = below(c.keys), w = below(c.keys);
            in.first.push_back(c.kind == sight::documents ? start : c.kind == sight::subset ? 0 : u);
            in.last.push_back(c.kind == sight::documents ? i : c.kind == sight::subset ? position : w);
        }
    }
    return in;
}

namespace {

// The oracle: forward, then backward from any output and log-sum-exp.
class oracle {
  public:
    explicit oracle(const attention_inputs& in) : in_(in), args_(in.args) {
        args_.q = in.q.data(), args_.k = in.k.data(), args_.v = in.v.data();
        if (!in.first.empty()) args_.first = in.first.data(), args_.last = in.last.data();
        if (!in.live_keys.empty()) args_.queries.live = in.live_queries.data(), args_.keys.live = in.live_keys.data();
        out_.o.assign(in.grad_o.size(), nan);
        out_.lse.assign(count(args_.batch, args_.queries.capacity, args_.heads), nan);
        sdepth::on_host::attention_forward(with(out_));
    }
    /// All outputs; gradients are those at `at.o` and `at.lse`.
    attention_outputs from(attention_outputs at) const {
        attention_outputs y = out_;
        y.grad_q.assign(in_.q.size(), nan), y.grad_k.assign(in_.k.size(), nan), y.grad_v.assign(in_.k.size(), nan);
        sdepth::on_host::attention_backward<double>(
            {with(at), in_.grad_o.data(), y.grad_q.data(), y.grad_k.data(), y.grad_v.data()});
        return y;
    }
    attention_outputs from_own() const { return from(out_); }
    attention_outputs roundings(attention_outputs at) const { return attention_roundings(with(at), in_.grad_o.data()); }

  private:
    sdepth::AttentionArgs<double> with(attention_outputs& at) const {
        auto a = args_;
        a.o = at.o.data(), a.lse = at.lse.data();
        return a;
    }

    const attention_inputs& in_;
    sdepth::AttentionArgs<double> args_;
    attention_outputs out_;
};

void check_case(const attention_case& c, kernels by) {
    INFO(c.name);
    const attention_inputs in = draw_attention(c, test_seed());
    const attention_outputs got = attention_on_device(in, by);
    const oracle host(in);
    // Both backwards start from the device's o and lse.
    const attention_outputs want = host.from(got), of = host.roundings(got);
    check_roundings("o", got.o, want.o, of.o);
    check_within("lse", got.lse, want.lse, of.lse);
    check_roundings("grad_q", got.grad_q, want.grad_q, of.grad_q);
    check_roundings("grad_k", got.grad_k, want.grad_k, of.grad_k);
    check_roundings("grad_v", got.grad_v, want.grad_v, of.grad_v);

    const attention_outputs again = attention_on_device(in, by);
    CHECK(same_bits(got.o, again.o));
    CHECK(same_bits(got.lse, again.lse));
    CHECK(same_bits(got.grad_q, again.grad_q));
    CHECK(same_bits(got.grad_k, again.grad_k));
    CHECK(same_bits(got.grad_v, again.grad_v));
}

std::vector<attention_case> cases(int dim) {
    return {
        {"one row", 1, 1, 1, dim, 1, 1},
        {"one tile", 1, 2, 1, dim, 128, 128},
        {"short of a tile", 2, 4, 2, dim, 77, 77},
        {"tails", 2, 4, 2, dim, 517, 517},
        {"many tiles", 1, 6, 2, dim, 1100, 1100},
        {"full", 2, 4, 2, dim, 333, 333, false},
        {"full, more queries", 1, 2, 2, dim, 700, 190, false},
        {"causal, more keys", 2, 4, 1, dim, 150, 610},
        {"causal, more queries: the first see nothing", 2, 4, 1, dim, 610, 150},
        {"window", 2, 4, 2, dim, 700, 700, true, 100},
        {"window of one", 1, 2, 1, dim, 300, 300, true, 1},
        {"documents", 2, 4, 2, dim, 900, 900, true, 0, sight::documents},
        {"subset of queries on all keys", 2, 4, 2, dim, 230, 900, true, 0, sight::subset},
        {"ragged ranges, empty rows, no order", 2, 4, 2, dim, 300, 400, true, 0, sight::ragged},
        {"live rows, none in one sequence", 4, 2, 1, dim, 400, 400, true, 0, sight::plain, true},
        {"live rows, full", 4, 2, 1, dim, 300, 260, false, 0, sight::plain, true},
        {"live rows, ragged ranges", 3, 4, 2, dim, 300, 300, true, 0, sight::ragged, true},
        {"rows apart", 2, 4, 2, dim, 260, 260, true, 0, sight::plain, false, true},
        {"group of eight", 1, 16, 2, dim, 400, 400},
        {"window, more keys", 2, 4, 2, dim, 200, 460, true, 90},
        {"window, more queries, group of eight", 1, 8, 1, dim, 460, 200, true, 90},
        {"window, live rows, group of three", 3, 6, 2, dim, 350, 350, true, 60, sight::plain, true},
        {"documents, live rows, rows apart, group of three", 3, 6, 2, dim, 300, 300, true, 0, sight::documents, true,
         true},
        {"subset, live rows, group of eight", 3, 8, 1, dim, 150, 500, true, 0, sight::subset, true},
        {"ragged ranges, rows apart, group of three", 2, 6, 2, dim, 260, 310, true, 0, sight::ragged, false, true},
    };
}

// For the sanitizers, which are slow.
std::vector<attention_case> small_cases(int dim) {
    return {
        {"causal", 1, 2, 1, dim, 200, 200},
        {"window, rows apart", 1, 2, 1, dim, 150, 150, true, 40, sight::plain, false, true},
        {"ragged, live rows", 3, 2, 1, dim, 140, 190, true, 0, sight::ragged, true},
    };
}

}  // namespace

TEST_CASE("attention d64 equals the oracle", "[attention][hopper]") {
    for (const auto& c : cases(64)) check_case(c, kernels::hopper);
}
TEST_CASE("attention d128 equals the oracle", "[attention][hopper]") {
    for (const auto& c : cases(128)) check_case(c, kernels::hopper);
}
// Each processor's block of threads takes a second item and more, forward and backward.
TEST_CASE("attention with several items a block equals the oracle", "[attention][hopper]") {
    for (const int dim : {64, 128}) {
        check_case({"window", 1, 6, 3, dim, 8300, 8300, true, 100}, kernels::hopper);
        check_case({"documents", 1, 6, 3, dim, 8300, 8300, true, 0, sight::documents}, kernels::hopper);
        check_case({"more columns than processors", 7, 44, 22, dim, 70, 70}, kernels::hopper);
        check_case({"heads of a group apart", 5, 10, 5, dim, 380, 380}, kernels::hopper);
        check_case({"window, portable", 1, 6, 3, dim, 4200, 4200, true, 100}, kernels::portable);
    }
    check_case({"2^19 rows of d64", 128, 16, 8, 64, 256, 256, true, 8}, kernels::hopper);
}
TEST_CASE("attention's tile for long sequences equals the oracle", "[attention][hopper]") {
    for (const int dim : {64, 128})
        for (const auto& c : cases(dim)) check_case(c, kernels::long_tile);
}
TEST_CASE("attention's tile for long sequences on small shapes equals the oracle", "[attention][hopper][small]") {
    for (const int dim : {64, 128})
        for (const auto& c : small_cases(dim)) check_case(c, kernels::long_tile);
}
TEST_CASE("attention with two items a block on small shapes equals the oracle", "[attention][hopper][small]") {
    for (const int dim : {64, 128}) {
        check_case({"more columns than processors", 4, 70, 35, dim, 24, 24}, kernels::long_tile);
        check_case({"heads of a group apart", 4, 66, 33, dim, 24, 24}, kernels::long_tile);
    }
}
TEST_CASE("attention on small shapes equals the oracle", "[attention][hopper][small]") {
    for (const int dim : {64, 128})
        for (const auto& c : small_cases(dim)) check_case(c, kernels::hopper);
}
TEST_CASE("portable attention on small shapes equals the oracle", "[attention][portable][small]") {
    for (const int dim : {64, 128})
        for (const auto& c : small_cases(dim)) check_case(c, kernels::portable);
}

// No kernels here: one key too few for one row of 150 is an error of every output that its bound shows.
TEST_CASE("the bounds of attention's roundings notice one key", "[attention]") {
    const attention_inputs in = draw_attention({"", 1, 2, 1, 64, 150, 150, true, 0, sight::subset}, 1);
    attention_inputs short_of_one = in;
    --short_of_one.last[90];
    const oracle host(in);
    const attention_outputs want = host.from_own(), of = host.roundings(want);
    const attention_outputs got = oracle(short_of_one).from_own();
    CHECK(compare_rounded(got.o, want.o, of.o).max > 2);
    CHECK(compare_rounded(got.grad_q, want.grad_q, of.grad_q).max > 2);
    CHECK(compare_rounded(got.grad_k, want.grad_k, of.grad_k).max > 2);
    CHECK(compare_rounded(got.grad_v, want.grad_v, of.grad_v).max > 2);
    CHECK(within(compare_rounded(want.o, want.o, of.o)));
}

namespace {

// Both ways round the same sums to bf16 and then compute in fp32: they differ by the order of one sum over a head, so
// by one rounding of the result where that tips it; the weight's gradient by the order of its sum over all rows.
void check_preparation(const attention_case& c, bool norm, bool rotary) {
    for (const bool portable : {false, true}) {
        INFO(c.name << ", d" << c.dim << (portable ? ", portable" : "") << (norm ? "" : ", no norm")
                    << (rotary ? "" : ", no rotation"));
        const attention_inputs in = draw_attention(c, test_seed());
        std::mt19937_64 random(test_seed());
        query_preparation prepared;
        prepared.norm = norm, prepared.rotary = rotary, prepared.x = in.q;  // of any numbers; dead rows are NaN
        prepared.weight = normal_fp32(count(1, 1, c.dim), random);
        prepared.grad_weight = normal_fp32(count(1, 1, c.dim), random);
        for (std::size_t i = 0; i < count(c.batch, c.queries, c.heads); ++i)
            prepared.rstd.push_back(.5 + static_cast<double>(random() % 4) / 4);
        for (std::size_t i = 0; i < count(c.batch, c.queries, 1) && !c.live; ++i)
            prepared.positions.push_back(static_cast<int>(random() % 100000));
        const prepared_outputs got = prepared_on_device(in, prepared, portable);
        const double terms = c.dim + c.batch * c.queries * c.heads;
        check_rounded("grad_x", got.grad_x, got.grad_x_apart, {.unit = 0x1p-7, .terms = double(c.dim)});
        check_rounded("grad_weight", got.grad_weight, got.grad_weight_apart, {.unit = 0x1p-24, .terms = terms});
        if (norm && !c.live) CHECK(got.grad_weight != prepared.grad_weight);
        CHECK(same_bits(got.grad_x, prepared_on_device(in, prepared, portable).grad_x));
    }
}

}  // namespace

TEST_CASE("attention backward through the preparation of queries equals the two apart", "[attention][small]") {
    for (const int dim : {64, 128})
        for (const bool norm : {true, false})
            for (const auto& c : std::vector<attention_case>{
                     {"tails, two sequences, heads no multiple of four", 2, 6, 2, dim, 150, 150},
                     {"dead rows, ragged ranges", 3, 4, 2, dim, 140, 190, true, 0, sight::ragged, true},
                 })
                check_preparation(c, norm, true);
}
TEST_CASE("attention backward through other preparations of queries equals the two apart", "[attention][hopper]") {
    for (const int dim : {64, 128}) {
        check_preparation({"heads no multiple of four", 2, 6, 2, dim, 150, 150}, true, false);
        check_preparation({"three heads a block of threads or more, one left", 64, 13, 13, dim, 20, 20}, true, true);
        check_preparation({"eight heads a block of threads, two left", 64, 34, 17, dim, 20, 20}, true, true);
    }
}

TEST_CASE("portable attention equals the oracle", "[attention][portable]") {
    for (const int dim : {64, 128})
        for (const auto& c : cases(dim)) check_case(c, kernels::portable);
}

}  // namespace sdepth_test
