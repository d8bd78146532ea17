// SPDX-License-Identifier: MIT
// The contract text: it names what the chapter's list asks for, in the part where it belongs.
#include "sdepth/contract.hpp"

#include <string>
#include <vector>

#include "sdepth/run_record.hpp"
#include "sdepth/sdepth.hpp"
#include "support/catch.hpp"

namespace {

using namespace sdepth;
using namespace sdepth::literals;

constexpr Dims small{
    .width = 64, .head_dim = 16, .heads = 4, .kv_heads = 2, .ffn = 128, .expert_ffn = 32, .vocab = 256};

constexpr moe_policy steered{
    .shared = 1, .shared_ffn = 48, .steering = true, .loss_weight = 0.25, .z_loss_weight = 1e-3, .capacity = 1.25};
constexpr auto hybrid = dense * 2_c + mamba2 * 3_c + (sparse<4>(moe<16, 2, steered>) * 2_c + dense) * 2_c;
using hybrid_model = Model<hybrid, small>;
using repeated_model = Model<(dense + mamba) * 2_c, small>;

std::string model_part(const std::string& text) { return text.substr(0, text.find("\nrun record\n")); }
std::string record_part(const std::string& text) { return text.substr(text.find("\nrun record\n")); }

bool has_line(const std::string& text, const std::string& line) {
    return text.find("\n" + line + "\n") != std::string::npos;
}

}  // namespace

TEST_CASE("the contract opens with the digest in 16 hexadecimal digits") {
    CHECK(digest_text(0x0123456789abcdef) == "0123456789abcdef");
    CHECK(digest_text(1) == "0000000000000001");
    CHECK(contract_text<hybrid_model>().find("digest: " + digest_text(digest<hybrid_model>) + "\n") !=
          std::string::npos);
}

TEST_CASE("the model part says which layers are what") {
    const std::string text = model_part(contract_text<hybrid_model>());
    for (const char* line :
         {"  layers: 11", "layers 1-2, 8, 11: block", "layers 3-5: block", "layers 6-7, 9-10: sparse",
          "  mixer: attention", "  mixer: mamba2", "  ffn: experts", "  ffn: swiglu", "  ffn: none"}) {
        CAPTURE(line);
        CHECK(has_line(text, line));
    }
}

TEST_CASE("the model part names the fields of attention, state and experts") {
    const std::string text = model_part(contract_text<hybrid_model>());
    for (const char* line : {"  mask: causal",
                             "  window, 0 = all: 0",
                             "  query heads: 4",
                             "  key and value heads: 2",
                             "  head width: 16",
                             "  rotary phases: yes",
                             "  rotary base: 1e+06",  // attention
                             "  heads: 2",
                             "  channels per head: 64",
                             "  states per channel: 128",
                             "  convolution width: 4",  // state
                             "  discretisation: exp(step A), step B",
                             "  state reset: at document starts",
                             "  recurrent state, elements: 16384",
                             "  experts: 16",
                             "  experts per token: 2",
                             "  expert width: 32",
                             "  shared experts, ungated: 1",
                             "  shared expert width: 48",
                             "  score: softmax",
                             "  score order: choose, then score",
                             "  ties: lower expert",
                             "  renormalised: yes",
                             "  combine: sum in order of choice, input order kept",
                             "  steering bias: yes",
                             "  sparsity K: 4",
                             "  chosen in evaluation: s - tau b - c >= 0",
                             "  tensor self_attn.k_proj.weight: 32 x 64",
                             "  tensor mlp.experts.{e}.up_proj.weight: 16 of 32 x 64",
                             "  tensor router.cut: 1, untrained"}) {
        CAPTURE(line);
        CHECK(has_line(text, line));
    }
}

TEST_CASE("the run record names losses, capacity, precision, placement and the counting basis") {
    const run_record record{.run = {.seq = 2048, .ranks = 2},
                            .kv_dtype = "bf16",
                            .state_dtype = "f32",
                            .document_mask = "yes",
                            .placement = "experts 8 a device",
                            .collectives = "all to all"};
    const std::string text = record_part(contract_text<hybrid_model>(record));
    const std::string total = std::to_string(params<hybrid_model>.total);
    for (const std::string& line : {std::string("  sequence length: 2048"),
                                    std::string("  devices: 2"),
                                    std::string("  keys and values: bf16"),
                                    std::string("  recurrent state: f32"),
                                    std::string("  document mask: yes"),
                                    std::string("  placement: experts 8 a device"),
                                    std::string("  collectives: all to all"),
                                    std::string("  optimiser: not stated"),
                                    "  total parameters, every trained number: " + total,
                                    std::string("  routing loss weight: 0.01"),
                                    std::string("  routing loss gradient: router and its input"),
                                    std::string("  balance loss equation: E sum f q, f of all choices over k"),
                                    std::string("  balance loss weight: 0.25"),
                                    std::string("  z-loss equation: weight x mean over rows of logsumexp(logits)^2"),
                                    std::string("  z-loss weight: 0.001"),
                                    std::string("  steering rule: bias += step x sign(mean load - load) once a step"),
                                    std::string("  capacity factor in training, 0 = dropless: 1.25"),
                                    std::string("  overflow in training: skip"),
                                    std::string("  routing group: the rows of one micro-batch"),
                                    std::string("  router precision: f32")}) {
        CAPTURE(line);
        CHECK(has_line(text, line));
    }
    // A fraction where the count is one.
    const ratio active = params<hybrid_model>.active;
    CHECK(text.find("routed experts x k/E: " + std::to_string(active.whole()) + (active.rest() == 0 ? "\n" : " ")) !=
          std::string::npos);
}

TEST_CASE("spelling and run change nothing in the model part, the run record changes with both its sources") {
    using repeated = Model<(dense + mamba) * 2_c, small>;
    using written_out = Model<dense + mamba + dense + mamba, small>;
    CHECK(contract_text<repeated>() == contract_text<written_out>());

    const std::string plain = contract_text<repeated>();
    const std::string other = contract_text<repeated>({.run = {.seq = 64}});
    CHECK(model_part(plain) == model_part(other));
    CHECK(record_part(plain) != record_part(other));

    using heavy = Model<dense + sparse<4, sparse_policy{.loss_weight = 1}> * 4_c + dense, small>;
    using light = Model<dense + sparse<4> * 4_c + dense, small>;
    CHECK(model_part(contract_text<heavy>()) == model_part(contract_text<light>()));
    CHECK(record_part(contract_text<heavy>()) != record_part(contract_text<light>()));
}

TEST_CASE("shared weights are named with their owners") {
    using looped = Model<dense + loop<2>(mamba * 2_c + dense), small>;
    CHECK(has_line(contract_text<looped>(), "  layers 5-7 have the weights of: layers 2-4"));
    using repeated = Model<dense + (mamba * 2_c + dense) * 2_c, small>;
    CHECK(contract_text<repeated>().find("have the weights of") == std::string::npos);
}

TEST_CASE("differences of two run records: what both state and state otherwise") {
    const auto text = [](const run_record& record) { return contract_text<repeated_model>(record); };
    const run_record one{.run = {.seq = 64}, .kv_dtype = "bf16", .optimiser = "adamw, rate 0.1"};
    CHECK(run_differences(text(one), text(one)).empty());
    CHECK(run_differences(text(one), text({})).empty());
    CHECK(run_differences(text({}), text(one)).empty());
    const run_record other{.run = {.seq = 32}, .kv_dtype = "f32", .optimiser = "adamw, rate 0.1"};
    CHECK(run_differences(text(one), text(other)) ==
          std::vector<std::string>{"sequence length: 64 in the file, 32 here",
                                   "keys and values: bf16 in the file, f32 here"});

    // Of a layer, below its heading: the model is the same, its loss weight is not.
    constexpr auto light = sparse<4, sparse_policy{.loss_weight = 0.5}>;
    using heavy_model = Model<dense + sparse<4> + dense, small>;
    using light_model = Model<dense + light + dense, small>;
    CHECK(digest<heavy_model> == digest<light_model>);
    CHECK(run_differences(contract_text<heavy_model>(), contract_text<light_model>()) ==
          std::vector<std::string>{"layers 2: sparse: routing loss weight: 0.01 in the file, 0.5 here"});
}
