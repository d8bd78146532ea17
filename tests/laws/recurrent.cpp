// SPDX-License-Identifier: MIT
// The laws for recurrent mixers over their policies, alone and with sparse depth around them (C-05).
#include <map>

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

constexpr auto mamba_block = layer<Mamba<mamba_policy{.state = 3}>, SwiGLU<>>;
using MambaPlain = Model<layer<Mamba<mamba_policy{.state = 3}>, None> * 2_c, small>;
using MambaNarrow = Model<layer<Mamba<mamba_policy{.state = 2, .conv = 1, .expand = 1, .step_rank = 3}>, SwiGLU<>,
                                block_policy{.norm = norm_place::post}> *
                              2_c,
                          small>;
using MambaSparse = Model<dense + sparse<2>(mamba_block) * 2_c + mamba_block, small>;
using MambaByDocument =
    Model<sparse<2, sparse_policy{.scope = selection_scope::document}>(mamba_block) + mamba_block, small>;

constexpr auto s4_block = layer<S4<s4_policy{.state = 3}>, SwiGLU<>>;
using S4Plain = Model<layer<S4<s4_policy{.state = 3}>, None> * 2_c, small>;
using S4Post = Model<layer<S4<s4_policy{.state = 2}>, SwiGLU<>, block_policy{.norm = norm_place::post}> * 2_c, small>;
using S4Sparse = Model<dense + sparse<2>(s4_block) * 2_c + s4_block, small>;
using S4ByDocument = Model<sparse<2, sparse_policy{.scope = selection_scope::document}>(s4_block) + s4_block, small>;

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

TEST_CASE("mamba keeps the laws") {
    keeps_the_laws<MambaPlain>();
    keeps_the_laws<MambaNarrow>();
    documents_are_apart<MambaPlain, short_run>();
    documents_are_apart<MambaNarrow, short_run>();
    steps_repeat<MambaPlain, short_run>();
}

TEST_CASE("sparse depth over mamba keeps the laws") {
    keeps_the_laws<MambaSparse>();
    documents_are_apart<MambaByDocument, short_run>();
}

TEST_CASE("s4 keeps the laws") {
    keeps_the_laws<S4Plain>();
    keeps_the_laws<S4Post>();
    documents_are_apart<S4Plain, short_run>();
    documents_are_apart<S4Post, short_run>();
    steps_repeat<S4Plain, short_run>();
}

TEST_CASE("sparse depth over s4 keeps the laws") {
    keeps_the_laws<S4Sparse>();
    documents_are_apart<S4ByDocument, short_run>();
}

namespace {

/// C-05: a sparse layer is its layer on the sequence of the chosen rows alone, packed documents included; and where it
/// chooses no row, no weight of it matters.
template <class Layer>
void is_the_layer_on_the_chosen_rows() {
    constexpr sparse_policy plain{.gate = gate_form::none, .scale = false, .bias = false};
    using Whole = Model<Sparse<2, Layer, plain>{}, small>;
    using Alone = Model<Layer{}, small>;
    subject<Whole, short_run> whole(11);
    subject<Alone, short_run> alone(12);
    std::map<std::string, long long> offsets;
    for_each_file_tensor<Whole>([&](const file_tensor& t) { offsets[t.name] = t.offset; });
    for_each_file_tensor<Alone>([&](const file_tensor& t) {
        std::copy_n(whole.weights() + offsets.at(t.name), t.elements, alone.weights() + t.offset);
    });

    whole.weights()[offsets.at("model.layers.0.router.cut")] = -0.03;  // about half of the rows

    const auto batch = random_batch::of<Whole, short_run>(11, true);
    auto picked = random_batch::of<Alone, short_run>(11, true);
    std::vector<std::size_t> rows[2];
    whole.model().evaluate(batch.view(true), selection_rule::threshold, [&](long long, const auto& routed) {
        for (std::size_t b = 0; b < 2; ++b) {
            picked.live[b] = routed.live[b];
            for (std::size_t j = 0; j < static_cast<std::size_t>(routed.live[b]); ++j) {
                const std::size_t from = 13 * b + static_cast<std::size_t>(routed.ids[13 * b + j]);
                rows[b].push_back(from);
                picked.tokens[13 * b + j] = batch.tokens[from];
                picked.documents[13 * b + j] = batch.documents[from];
            }
        }
    });
    const auto got = whole.model().logits(batch.view(true));
    const auto want = alone.model().logits(picked.view(true));
    std::size_t compared = 0;
    for (std::size_t b = 0; b < 2; ++b)
        for (std::size_t j = 0; j < rows[b].size(); ++j)
            for (std::size_t v = 0; v < 19; ++v, ++compared)
                REQUIRE(std::abs(got[19 * rows[b][j] + v] - want[19 * (13 * b + j) + v]) <= 1e-10);
    CHECK(compared > 5 * 19);
    CHECK(compared < 25 * 19);

    whole.weights()[offsets.at("model.layers.0.router.cut")] = 1e9;
    const auto none = whole.model().logits(batch.view(true));
    for_each_file_tensor<Whole>([&](const file_tensor& t) {
        if (t.name.find("mixer") != std::string::npos) whole.weights()[t.offset] += 1;
    });
    CHECK(whole.model().logits(batch.view(true)) == none);
    CHECK(std::all_of(none.begin(), none.end(), [](double x) { return std::isfinite(x); }));
}

}  // namespace

TEST_CASE("a sparse recurrent layer is the layer on the chosen rows alone") {
    is_the_layer_on_the_chosen_rows<std::remove_cvref_t<decltype(linear_attention)>>();
    is_the_layer_on_the_chosen_rows<std::remove_cvref_t<decltype(mamba2_block)>>();
    is_the_layer_on_the_chosen_rows<std::remove_cvref_t<decltype(gated_delta)>>();
    is_the_layer_on_the_chosen_rows<std::remove_cvref_t<decltype(mamba_block)>>();
    is_the_layer_on_the_chosen_rows<std::remove_cvref_t<decltype(s4_block)>>();
}
