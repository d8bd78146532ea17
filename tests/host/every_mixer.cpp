// SPDX-License-Identifier: MIT
// Every mixer but depth attention, alone and under sparse depth, in one model.
#include "host/every_layer.hpp"

using namespace every_layer;

namespace {

constexpr auto mamba2_block = layer<Mamba2<mamba2_policy{.state = 3, .head_dim = 5}>, SwiGLU<>>;
constexpr auto mamba_block = layer<Mamba<mamba_policy{.state = 3}>, None>;
constexpr auto s4_block = layer<S4<s4_policy{.state = 3}>, MLP<activation::gelu, ffn_policy{.biases = true}>>;
constexpr auto windowed = layer<Attention<attention_policy{.norm = qk_norm::full_width, .window = 5, .biases = true}>,
                                SwiGLU<>, block_policy{.norm = norm_place::post}>;
using Mixers = Model<dense + sparse<2, sparse_policy{.scope = selection_scope::document}>(linear_attention) +
                         sparse<3>(mamba2_block) + mamba_block + gated_delta + s4_block +
                         loop<2>(sparse<2, sparse_policy{.keys = key_scope::full}>(windowed) * 2_c + dense),
                     odd>;

}  // namespace

TEST_CASE("every mixer trains and evaluates in single precision; a replay changes no bit") {
    const auto gradients = trains<Mixers, kept>(optimiser::adamw);
    CHECK(trains<Mixers, replayed>(optimiser::muon) == gradients);
}

TEST_CASE("every mixer decodes in single precision") { decodes<Mixers>(); }
