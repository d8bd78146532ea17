// SPDX-License-Identifier: MIT
// The laws for recurrent mixers over their policies, alone and with sparse depth around them (C-05).
#include "laws/models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

namespace {

constexpr auto ungated = LinearAttention<linear_attention_policy{
    .heads = 2, .key_dim = 3, .value_dim = 5, .map = feature_map::exponential, .gated = false}>{};
constexpr auto relu_features =
    layer<LinearAttention<linear_attention_policy{.map = feature_map::relu, .epsilon = 1e-2}>, None>;
using LinearPlain = Model<linear_attention * 2_c, small>;
using LinearUngated =
    Model<layer<std::remove_cvref_t<decltype(ungated)>, SwiGLU<>, block_policy{.norm = norm_place::post}> * 2_c, small>;
using LinearRelu = Model<relu_features + dense, small>;
using LinearSparse = Model<dense + sparse<2>(linear_attention) * 2_c + linear_attention, small>;
using LinearByDocument =
    Model<sparse<2, sparse_policy{.scope = selection_scope::document}>(linear_attention) + linear_attention, small>;

using Mamba2Plain = Model<layer<Mamba2<mamba2_policy{.state = 3, .head_dim = 6}>, None> * 2_c, small>;
using Mamba2Grouped = Model<layer<Mamba2<mamba2_policy{.state = 3, .conv = 2, .expand = 1, .head_dim = 3, .groups = 2}>,
                                  SwiGLU<>, block_policy{.norm = norm_place::post}> +
                                layer<Mamba2<mamba2_policy{.state = 2, .conv = 1, .head_dim = 8}>, None>,
                            small>;
constexpr auto mamba2_block = layer<Mamba2<mamba2_policy{.state = 3, .head_dim = 6}>, SwiGLU<>>;
using Mamba2Sparse = Model<dense + sparse<2>(mamba2_block) * 2_c + mamba2_block, small>;
using Mamba2ByDocument =
    Model<sparse<2, sparse_policy{.scope = selection_scope::document}>(mamba2_block) + mamba2_block, small>;

using DeltaPlain = Model<gated_delta * 2_c, small>;
using DeltaShared =
    Model<layer<GatedDelta<gated_delta_policy{
                    .heads = 2, .value_heads = 4, .key_dim = 3, .value_dim = 5, .conv = 2, .output_gate = false}>,
                None, block_policy{.norm = norm_place::post}> *
              2_c,
          small>;
using DeltaSparse = Model<dense + sparse<2>(gated_delta) * 2_c + gated_delta, small>;
using DeltaByDocument =
    Model<sparse<2, sparse_policy{.scope = selection_scope::document}>(gated_delta) + gated_delta, small>;

/// Every law that is not about documents under sparse depth.
template <class M>
void keeps_the_laws() {
    for (const bool packed : {false, true}) gradients_agree<M, short_run>(packed);
    prefix_is_independent<M, short_run>();
    decoding_equals_evaluation<M, short_run>();
    decoding_equals_evaluation<M, short_run, 1>();
}

}  // namespace

TEST_CASE("linear attention keeps the laws") {
    keeps_the_laws<LinearPlain>();
    keeps_the_laws<LinearUngated>();
    keeps_the_laws<LinearRelu>();
    documents_are_apart<LinearPlain, short_run>();
    documents_are_apart<LinearUngated, short_run>();
    steps_repeat<LinearPlain, short_run>();
}

TEST_CASE("sparse depth over linear attention keeps the laws") {
    keeps_the_laws<LinearSparse>();
    documents_are_apart<LinearByDocument, short_run>();
}

TEST_CASE("mamba-2 keeps the laws") {
    keeps_the_laws<Mamba2Plain>();
    keeps_the_laws<Mamba2Grouped>();
    documents_are_apart<Mamba2Plain, short_run>();
    documents_are_apart<Mamba2Grouped, short_run>();
    steps_repeat<Mamba2Plain, short_run>();
}

TEST_CASE("sparse depth over mamba-2 keeps the laws") {
    keeps_the_laws<Mamba2Sparse>();
    documents_are_apart<Mamba2ByDocument, short_run>();
}

TEST_CASE("gated delta rule keeps the laws") {
    keeps_the_laws<DeltaPlain>();
    keeps_the_laws<DeltaShared>();
    documents_are_apart<DeltaPlain, short_run>();
    documents_are_apart<DeltaShared, short_run>();
    steps_repeat<DeltaPlain, short_run>();
}

TEST_CASE("sparse depth over the gated delta rule keeps the laws") {
    keeps_the_laws<DeltaSparse>();
    documents_are_apart<DeltaByDocument, short_run>();
}
