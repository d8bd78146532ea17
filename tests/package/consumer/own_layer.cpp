// SPDX-License-Identifier: MIT
// A user's layer, defined outside the library: its counts, tensors, digest and diagnostics come from its members alone.
#include <cstdio>
#include <string>
#include <string_view>

#include "sdepth/sdepth.hpp"
#include "sdepth/tensor_table.hpp"

namespace mine {

using sdepth::Dims;

/// x += W_out ema(W_in norm x), an exponential moving average with one learned decay a channel, in groups of N
/// channels.
template <long long N>
struct Smooth : sdepth::layer_base {
    static constexpr std::string_view name = "smooth";
    static constexpr bool has_mixer = true;
    static constexpr bool has_ffn = false;
    static constexpr bool causal = true;

    static constexpr sdepth::tensor_rows tensors(const Dims& d) {
        using sdepth::init_kind;
        using sdepth::role;
        sdepth::tensor_rows rows;
        rows.add(sdepth::vector("input_layernorm.weight", role::norm, d.width, {init_kind::ones, 1}));
        rows.add(sdepth::matrix("smooth.in_proj.weight", role::value, d.width, d.width));
        rows.add(sdepth::vector("smooth.decay", role::recurrence, d.width, {init_kind::constant, 0.9}));
        rows.add(sdepth::matrix("smooth.out_proj.weight", role::output, d.width, d.width));
        return rows;
    }
    static constexpr sdepth::mixing_work mixing(const Dims&) { return {}; }  // element by element: no matrix product
    static constexpr sdepth::state_size state(const Dims& d) { return {.recurrent = d.width}; }
    static constexpr sdepth::verdict check(const Dims& d) {
        if (N >= 1 && d.width % N == 0) return {};
        return {sdepth::rule::layer_own, 0, d.width, N};
    }
    template <class Sink>
    static constexpr void describe(Sink& sink, const Dims&) {
        sink.function("group", N);
    }
};

template <long long N>
inline constexpr Smooth<N> smooth{};

}  // namespace mine

using namespace sdepth;
using namespace sdepth::literals;

constexpr Dims sizes{.width = 8, .head_dim = 4, .heads = 2, .kv_heads = 1, .ffn = 16, .vocab = 32};
constexpr auto formula = dense + mine::smooth<4> * 3_c + dense;
using M = Model<formula, sizes>;

// By hand. dense: q 8x8, k and v 4x8, o 8x8, three of 16x8 = 576, norms 8 + 8 + 4 + 4. smooth: two of 8x8, norm and
// decay.
static_assert(M::layers == 5 && M::ffn_layers == 2 && is_causal<M>);
static_assert(counted<params<M>.paper, 2 * 576 + 3 * 128 + 2 * 32 * 8>());
static_assert(counted<params<M>.total, 2 * (576 + 24) + 3 * (128 + 16) + 2 * 32 * 8 + 8>());

// Under the library's own routing the layer works a quarter as often, and brings a router, a scale and a cut.
using S = Model<dense + sparse<4>(mine::smooth<4>) * 3_c + dense, sizes>;
static_assert(counted<params<S>.total, params<M>.total + 3 * (8 + 1)>());
static_assert(counted<params<S>.state, 3>());

// Two values of its policy are two models, and its own rule is found at its place.
static_assert(digest<M> != digest<Model<dense + mine::smooth<2> * 3_c + dense, sizes>>);
using bad = decltype(dense + mine::smooth<3> * 3_c + dense);
static_assert(check<bad>(sizes).broken == rule::layer_own && check<bad>(sizes).layer == 2);
static_assert(check<bad>(sizes).a == 8 && check<bad>(sizes).b == 3);

int main() {
    long long elements = 0;
    bool found = false;
    for_each_file_tensor<M>([&](const file_tensor& tensor) {
        elements += tensor.elements;
        found = found || tensor.name == "model.layers.3.smooth.in_proj.weight";
    });
    std::printf("%lld elements in the table, own tensor %s\n", elements, found ? "found" : "missing");
    return found && elements == params<M>.total ? 0 : 1;
}
