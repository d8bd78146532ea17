// SPDX-License-Identifier: MIT
// Sparse depth over recurrent mixers against the mixers on the chosen rows alone (C-05).
#include <algorithm>
#include <map>

#include "laws/pipeline_laws.hpp"
#include "laws/recurrent_models.hpp"

using namespace laws;

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
