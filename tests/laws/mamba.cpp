// SPDX-License-Identifier: MIT
// The laws for Mamba and Mamba-2 over their policies, alone and with sparse depth around them; what Muon does with
// their stacked matrices.
#include <algorithm>
#include <string>
#include <vector>

#include "laws/pipeline_laws.hpp"
#include "laws/recurrent_models.hpp"

using namespace laws;

TEST_CASE("mamba keeps the laws") {
    keep_the_laws(mamba_models{});
    decode_one_by_one(mamba_models{});
    steps_repeat<MambaPlain, short_run>();
}

TEST_CASE("mamba-2 keeps the laws") {
    keep_the_laws(mamba2_models{});
    decode_one_by_one(mamba2_models{});
    steps_repeat<Mamba2Plain, short_run>();
}

namespace {

/// Muon's update of a tensor of the first layer is that of its logical matrices, each by itself.
/// @param parts  rows of each
template <class M>
void muon_updates_each_part(const std::string& name, const std::vector<int>& parts) {
    subject<M, short_run> model(3);
    model.loss(random_batch::of<M, short_run>(3, false), false);
    const auto t = std::find_if(model.tensors().begin(), model.tensors().end(),
                                [&](const file_tensor& of) { return of.name == "model.layers.0." + name; });
    REQUIRE(t != model.tensors().end());
    const int cols = static_cast<int>(t->row->tensor.cols);
    const double* start = model.weights() + t->offset;
    std::vector<double> weight(start, start + t->elements), grad = model.gradient(*t), first(grad.size());
    const update_scalars scalars{.rate = .1};
    host<double> backend(1);
    std::size_t from = 0;
    for (const int rows : parts) {
        std::vector<double> scratch(static_cast<std::size_t>(muon_scratch(rows, cols)));
        backend.muon({.rows = rows,
                      .cols = cols,
                      .decay = .3,
                      .scalars = &scalars,
                      .master = weight.data() + from,
                      .grad = grad.data() + from,
                      .first = first.data() + from,
                      .scratch = scratch.data()});
        from += static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols);
    }
    CHECK(from == weight.size());
    model.model().advance({.kind = optimiser::muon, .rate = .1, .decay = .3, .clip = 0});
    CHECK(std::equal(weight.begin(), weight.end(), start));
}

}  // namespace

TEST_CASE("muon updates the logical matrices of a tensor, not the tensor") {
    muon_updates_each_part<MambaPlain>("mixer.in_proj.weight", {24, 24});              // x, z
    muon_updates_each_part<MambaPlain>("mixer.x_proj.weight", {1, 3, 3});              // step, B, C
    muon_updates_each_part<Mamba2Grouped>("mixer.in_proj.weight", {12, 12, 6, 6, 4});  // z, x, B, C, step
    muon_updates_each_part<MambaPlain>("mixer.out_proj.weight", {12});                 // one
}
