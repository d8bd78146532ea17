// SPDX-License-Identifier: MIT
// Prints what every named model costs, without training or even building one:
//
//     g++ -std=c++20 -Iinclude examples/count_params.cpp -o count_params
//     ./count_params              a table
//     ./count_params --json       one object a line
//     ./count_params 936M/a4k8    every count of one model
#include <cstdio>
#include <string>
#include <string_view>

#include "common/failure.hpp"
#include "sdepth/presets.hpp"
#include "sdepth/report.hpp"

using namespace sdepth;

// The counts of a model that the table and the JSON lines show, at 32,768 tokens.
struct row {
    std::string_view preset;
    long long layers, ffn_layers, paper_params, total_params;
    ratio active_params, paper_flops_per_token, training_flops_per_token, kv_bytes_per_token;
    std::string digest;
};

template <class M>
row row_of(std::string_view preset) {
    constexpr Run run{.seq = 32768};
    return {.preset = preset,
            .layers = M::layers,
            .ffn_layers = M::ffn_layers,
            .paper_params = params<M>.paper,
            .total_params = params<M>.total,
            .active_params = params<M>.active,
            .paper_flops_per_token = flops<M, run>.paper.per_token(),
            .training_flops_per_token = flops<M, run>.training.per_token(),
            .kv_bytes_per_token = state<M, run>.kv_expected / ratio(run.seq),
            .digest = digest_text(digest<M>)};
}

// A fraction as a decimal number, exact if it ends within twelve places.
std::string decimal(ratio number) {
    std::string text = std::to_string(number.whole());
    long long rest = number.rest();
    if (rest != 0) text += '.';
    for (int place = 0; place < 12 && rest != 0; ++place) {
        text += static_cast<char>('0' + rest * 10 / number.den());
        rest = rest * 10 % number.den();
    }
    return text;
}

void print_json(const row& r) {
    std::printf(
        "{\"preset\": \"%s\", \"layers\": %lld, \"ffn_layers\": %lld, \"paper_params\": %lld, "
        "\"total_params\": %lld, \"active_params\": %s, \"paper_flops_per_token\": %s, "
        "\"training_flops_per_token\": %s, \"kv_bytes_per_token\": %s, \"digest\": \"%s\"}\n",
        std::string(r.preset).c_str(), r.layers, r.ffn_layers, r.paper_params, r.total_params,
        decimal(r.active_params).c_str(), decimal(r.paper_flops_per_token).c_str(),
        decimal(r.training_flops_per_token).c_str(), decimal(r.kv_bytes_per_token).c_str(), r.digest.c_str());
}

constexpr const char* table_line = "%-28s %7s %19s %19s %15s %16s %16s %9s  %s\n";

void print_heading() {
    std::printf(table_line, "", "", "parameters,", "parameters,", "parameters,", "FLOPs of a token,",
                "FLOPs of a token,", "KV bytes", "");
    std::printf(table_line, "preset", "layers", "matrices", "total", "active", "forward, paper", "training", "a token",
                "digest");
}
void print_table(const row& r) {
    std::printf(table_line, std::string(r.preset).c_str(), grouped(r.layers).c_str(), grouped(r.paper_params).c_str(),
                grouped(r.total_params).c_str(), grouped(r.active_params).c_str(),
                grouped(r.paper_flops_per_token).c_str(), grouped(r.training_flops_per_token).c_str(),
                grouped(r.kv_bytes_per_token).c_str(), r.digest.c_str());
}

int main(int argc, char** argv) try {
    const std::string_view argument = argc > 1 ? argv[1] : "";
    bool found = false;
    if (argc > 2) {
        // too many arguments: falls through to the error
    } else if (argument.empty() || argument == "--json") {
        if (argument.empty()) print_heading();
        presets::for_each([&]<class M>(std::string_view name, std::type_identity<M>) {
            argument.empty() ? print_table(row_of<M>(name)) : print_json(row_of<M>(name));
        });
        found = true;
    } else {
        presets::for_each([&]<class M>(std::string_view name, std::type_identity<M>) {
            if (name != argument) return;
            std::fputs(report<M, Run{.seq = 32768}>().c_str(), stdout);
            found = true;
        });
    }
    if (found) {
        examples::check_output();
        return 0;
    }
    std::fprintf(stderr, "count_params: expected nothing, --json or one preset's name, got '%s'%s\n", argv[1],
                 argc > 2 ? " and more" : "");
    return 2;
} catch (const std::exception& e) {
    return examples::failed(e);
}
