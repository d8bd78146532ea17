// SPDX-License-Identifier: MIT
// Writes text with a trained model, byte by byte: prefill of the prompt, then steps.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <string>
#include <vector>

#include "common/failure.hpp"
#include "common/flags.hpp"
#include "models/small_x_mod.hpp"
#include "sdepth/checkpoint.hpp"
#include "sdepth/decoder.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "sdepth/random.hpp"

namespace {

// One of the `top` likeliest tokens, by softmax(logits / temperature); temperature 0 takes the likeliest.
int sample(const std::vector<float>& logits, double temperature, std::size_t top, double uniform) {
    std::vector<std::size_t> order(logits.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    const std::size_t kept = temperature == 0 ? 1 : std::min(top, order.size());
    std::partial_sort(
        order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
        [&](std::size_t a, std::size_t b) { return logits[a] != logits[b] ? logits[a] > logits[b] : a < b; });
    std::vector<double> weight(kept, 1);
    for (std::size_t i = 0; i < kept && temperature > 0; ++i) {
        weight[i] =
            std::exp((static_cast<double>(logits[order[i]]) - static_cast<double>(logits[order[0]])) / temperature);
    }
    double left = uniform * std::accumulate(weight.begin(), weight.end(), 0.0);
    std::size_t chosen = 0;
    while (chosen + 1 < kept && (left -= weight[chosen]) > 0) ++chosen;
    return static_cast<int>(order[chosen]);
}

}  // namespace

int main(int argc, char** argv) try {
    constexpr int context = examples::small_run.seq;  // phases beyond are new to the model
    std::filesystem::path file;
    std::string prompt = "\n";
    int length = 600;
    double temperature = 0.5;
    std::size_t top = 40;
    std::uint64_t seed = 1;
    CLI::App app("Writes text with a model that train saved.");
    app.add_option("model", file, "model or training file")->required()->check(CLI::ExistingFile);
    app.add_option("--prompt", prompt, "text to go on from");
    app.add_option("--length", length, "bytes to write")->check(examples::number(1))->capture_default_str();
    app.add_option("--temperature", temperature, "0 = always the likeliest byte")
        ->check(examples::number(0, 10))
        ->capture_default_str();
    app.add_option("--top", top, "likeliest bytes to choose from")
        ->check(examples::number(1, 256))
        ->capture_default_str();
    app.add_option("--seed", seed, "of the choices")->check(examples::number(0))->capture_default_str();
    examples::parse(app, argc, argv);
    if (prompt.empty()) throw sdepth::error("the prompt is empty; give at least one byte");

    sdepth::host<float> backend;
    sdepth::decoder<examples::SmallXMoD, sdepth::host<float>, sdepth::Run{.seq = 64, .context = context}> model(
        backend);
    sdepth::checkpoint(model).load_model(file);

    std::fputs(prompt.c_str(), stdout);
    std::vector<int> text;  // what the model may still look at
    for (const char c : prompt) text.push_back(static_cast<unsigned char>(c));
    for (int i = 0; i < length; ++i) {
        if (text.size() > context) {  // start again from the last half
            text.erase(text.begin(), text.end() - context / 2);
            model.reset();
        }
        const auto seen = static_cast<std::ptrdiff_t>(model.length(0));
        const std::vector<float> logits = model.extend({{text.begin() + seen, text.end()}})[0];
        const double uniform =
            sdepth::random_uniform(seed, sdepth::random_use::sampling, 0, static_cast<std::uint64_t>(i));
        text.push_back(sample(logits, temperature, top, uniform));
        std::putchar(text.back());
        if (std::ferror(stdout) != 0) break;
    }
    std::putchar('\n');
    examples::check_output();
} catch (const std::exception& e) {
    return examples::failed(e);
}
