// SPDX-License-Identifier: MIT
// Trains Dense, MoD, X-MoD, X-MoD's ablations, experts and MoDA under one budget and prints the table of held-out
// losses.
//
// Equal FLOPs: every model gets the `useful` training FLOPs of Dense at --steps, so cheaper models see more tokens,
// which the column D/D_D states; equal tokens and equal time are the other two readings of "fair".
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>

#include "common/comparison.hpp"
#include "common/failure.hpp"
#include "common/flags.hpp"

namespace {

using namespace sdepth;
using namespace sdepth::literals;
using examples::budget;

// Four active layers each; `no_anchors` clears its bias every four layers instead. A token's experts are together as
// wide as the dense feed-forward part, and the expert model has about the parameters of X-MoD.
constexpr sparse_policy ungated{.gate = gate_form::none, .scale = false};
constexpr auto dense4 = dense * 4_c;
constexpr auto mod4 = dense + (mod<4> * 2_c + dense) * 2_c;
constexpr auto x_mod = dense * 2_c + (sparse<4> * 4_c + dense);
constexpr auto no_gate = dense * 2_c + (sparse<4, ungated> * 4_c + dense);
constexpr auto no_bias = dense * 2_c + (sparse<4, sparse_policy{.bias = false}> * 4_c + dense);
constexpr auto no_prefix = (sparse<4> * 4_c + dense) * 2_c;
constexpr auto no_anchors = dense * 2_c + sparse<4, sparse_policy{.clear_every = 4}> * 8_c;
constexpr auto printed_rule = dense * 2_c + (sparse<4, printed_policy> * 4_c + dense);
constexpr auto experts = moe<16, 6, steered_policy> * 4_c;
constexpr auto depth_attention = moda * 3_c + moda_last;

constexpr Dims sizes{
    .width = 128, .head_dim = 64, .heads = 2, .kv_heads = 1, .ffn = 384, .expert_ffn = 384 / (6 + 2), .vocab = 256};
constexpr Run run_sizes{.seq = 128, .batch = 8};
using Reference = Model<dense4, sizes>;

template <class M>
auto measure(const std::string& name, const corpus_split& text, const examples::comparison_request& r) {
    constexpr double reference = flops<Reference, run_sizes>.useful.per_token().value();
    return examples::measure<M, run_sizes>(name, text, r, reference);
}

}  // namespace

int main(int argc, char** argv) try {
    std::string data, held_out;
    examples::comparison_request r;
    int seeds = 2;
    CLI::App app("Trains several models under one budget and compares their held-out losses.");
    app.add_option("--data", data, "text file or folder")->required();
    app.add_option("--held-out", held_out, "text of the evaluations")->required();
    app.add_option("--steps", r.steps, "optimiser steps of Dense")->check(examples::number(1))->capture_default_str();
    app.add_option("--equal", r.equal, "flops, tokens or time")
        ->transform(CLI::CheckedTransformer(std::map<std::string, budget>{
            {"flops", budget::flops}, {"tokens", budget::tokens}, {"time", budget::time}}));
    app.add_option("--seconds", r.seconds, "of training, with --equal time")
        ->check(examples::number_above(0))
        ->capture_default_str();
    app.add_option("--rate", r.rate, "peak learning rate")->check(examples::number_above(0))->capture_default_str();
    app.add_option("--seeds", seeds, "runs of each model")->check(examples::number(1, 1000))->capture_default_str();
    app.add_option("--threads", r.threads, "0 = one a core")->check(examples::number(0, 1024))->capture_default_str();
    examples::parse(app, argc, argv);
    examples::stop_on_interrupt();
    r.seeds.clear();
    for (int i = 1; i <= seeds; ++i) r.seeds.push_back(static_cast<std::uint64_t>(i));

    const corpus_split text{corpus::open(data), corpus::open(held_out)};
    examples::print({measure<Reference>("Dense", text, r), measure<Model<mod4, sizes>>("MoD", text, r),
                     measure<Model<x_mod, sizes>>("X-MoD A1K4", text, r),
                     measure<Model<printed_rule, sizes>>("  printed threshold", text, r),
                     measure<Model<no_gate, sizes>>("  no gate or scale", text, r),
                     measure<Model<no_bias, sizes>>("  no bias", text, r),
                     measure<Model<no_prefix, sizes>>("  no prefix", text, r),
                     measure<Model<no_anchors, sizes>>("  no anchors", text, r),
                     measure<Model<experts, sizes>>("MoE 6 of 16 + 2", text, r),
                     measure<Model<depth_attention, sizes>>("MoDA", text, r)});
    examples::check_output();
} catch (const std::exception& e) {
    return examples::failed(e);
}
