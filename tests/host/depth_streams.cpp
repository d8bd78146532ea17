// SPDX-License-Identifier: MIT
// Depth streams on toy stacks: each against its definition, and against the depth branch of MoDA.
#include "sdepth/depth_streams.hpp"

#include <cmath>
#include <limits>
#include <vector>

#include "sdepth/kernels/host/depth_attention.hpp"
#include "sdepth/random.hpp"
#include "support/catch.hpp"

namespace {

using namespace sdepth;
using vec = std::vector<double>;

vec random_numbers(std::size_t n, std::uint32_t stream) {
    vec x(n);
    for (std::size_t i = 0; i < n; ++i) x[i] = random_normal(1, random_use::check, stream, i);
    return x;
}
/// A toy layer: f(x) = tanh(x + l).
vec layer(const vec& x, int l) {
    vec f = x;
    for (double& v : f) v = std::tanh(v + l);
    return f;
}

// Table 1: twice the layers, the width, or the query heads of a KV head.
constexpr stream_sizes base{.layers = 64, .width = 512, .heads = 8, .kv_heads = 8};
constexpr stream_sizes deeper{.layers = 128, .width = 512, .heads = 8, .kv_heads = 8};
constexpr stream_sizes wider{.layers = 64, .width = 1024, .heads = 8, .kv_heads = 8};
constexpr stream_sizes grouped{.layers = 64, .width = 512, .heads = 8, .kv_heads = 4};
constexpr double growth(count more, count of) {
    return static_cast<double>(more.value()) / static_cast<double>(of.value());
}
template <class Stream>
constexpr bool grows(double layers_parameters, double width_parameters, double layers_flops, double width_flops) {
    constexpr stream_cost one = Stream::cost(base);
    const auto near = [](double a, double b) { return a > 0.97 * b && a < 1.03 * b; };
    return near(growth(Stream::cost(deeper).parameters, one.parameters), layers_parameters) &&
           near(growth(Stream::cost(wider).parameters, one.parameters), width_parameters) &&
           near(growth(Stream::cost(deeper).flops, one.flops), layers_flops) &&
           near(growth(Stream::cost(wider).flops, one.flops), width_flops) &&
           Stream::cost(deeper).cache == count(2) * one.cache && Stream::cost(wider).cache == count(2) * one.cache;
}
static_assert(grows<depth_dense>(4, 4, 4, 4));             // L^2 D^2 and L^2 D^2
static_assert(grows<depth_attention_stream>(2, 4, 4, 2));  // L D^2 and L^2 D
static_assert(depth_dense::cost(grouped).cache == depth_dense::cost(base).cache);
static_assert(count(2) * depth_attention_stream::cost(grouped).cache == depth_attention_stream::cost(base).cache);
static_assert(depth_residual::cost(base).parameters == count(0) && depth_residual::cost(deeper).cache == count(512));

}  // namespace

TEST_CASE("depth residual adds, and depth dense with unit blocks is the same stack", "[depth_streams]") {
    const vec first{.3, -.2, .5};
    vec sum = first, unit;
    depth_residual residual(first);
    depth_dense dense(first);
    for (int l = 0; l < 4; ++l) {
        // [D, l D]: a unit matrix for every state so far reads their sum.
        const auto states = static_cast<std::size_t>(l) + 1;
        unit.assign(9 * states, 0);
        for (std::size_t c = 0; c < 3; ++c)
            for (std::size_t s = 0; s < states; ++s) unit[c * 3 * states + s * 3 + c] = 1;
        const vec read = dense.read(unit);
        for (std::size_t c = 0; c < 3; ++c) {
            CHECK(residual.read()[c] == sum[c]);
            CHECK(std::abs(read[c] - sum[c]) < 1e-15);
        }
        const vec f = layer(sum, l);
        residual.write(f);
        dense.write(f);
        for (std::size_t c = 0; c < 3; ++c) sum[c] += f[c];
    }
    CHECK_THROWS_AS(dense.read(unit), error);  // made for one state less
}

TEST_CASE("depth dense mixes whole states", "[depth_streams]") {
    depth_dense dense({1, 2});
    dense.write({10, 20});
    CHECK(dense.read({1, 0, 0, 2, 0, 3, 4, 0}) == vec{1 + 40, 6 + 40});
}

TEST_CASE("depth attention reads one state as it is, and even logits as the mean", "[depth_streams]") {
    const stream_sizes sizes{.layers = 2, .width = 2, .heads = 1, .kv_heads = 1};
    const depth_attention_stream::projections w{{0, 0, 0, 0}, {1, 2, 3, 4}, {1, 0, 0, 1}};
    depth_attention_stream stream(sizes, {4, 6}, w);
    CHECK(stream.read() == vec{4, 6});
    stream.write({8, -2}, w);
    CHECK(stream.read() == vec{6, 2});
}

TEST_CASE("depth attention is MoDA's depth branch without a sequence", "[depth_streams]") {
    const stream_sizes sizes{.layers = 4, .width = 12, .heads = 4, .kv_heads = 2};
    depth_attention_stream::projections w{random_numbers(144, 1), random_numbers(72, 2), random_numbers(72, 3)};
    vec state = random_numbers(12, 4), slots(4 * 2 * 2 * 3), q;
    depth_attention_stream stream(sizes, state, w);
    for (int l = 0;; ++l) {
        q = detail::stream_product(w.query, state);
        const vec k = detail::stream_product(w.key, state), v = detail::stream_product(w.value, state);
        for (std::size_t kv = 0; kv < 2; ++kv)
            for (std::size_t c = 0; c < 3; ++c) {
                slots[((static_cast<std::size_t>(l) * 2 + kv) * 2) * 3 + c] = k[kv * 3 + c];
                slots[((static_cast<std::size_t>(l) * 2 + kv) * 2 + 1) * 3 + c] = v[kv * 3 + c];
            }
        vec o(12, 0), lse(4, -std::numeric_limits<double>::infinity());
        on_host::workers team(1);
        on_host::depth_attention_forward<double>(team, {.heads = 4,
                                                        .kv_heads = 2,
                                                        .head_dim = 3,
                                                        .tokens = {1, nullptr},
                                                        .slots = 4,
                                                        .used = l + 1,
                                                        .scale = 1 / std::sqrt(3.0),
                                                        .q = q.data(),
                                                        .slot = slots.data(),
                                                        .o = o.data(),
                                                        .lse = lse.data()});
        const vec read = stream.read();
        for (std::size_t c = 0; c < 12; ++c) CHECK(std::abs(read[c] - o[c]) < 1e-14);
        if (l == 3) break;
        state = layer(read, l);
        stream.write(state, w);
    }
}
