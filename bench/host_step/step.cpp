// SPDX-License-Identifier: MIT
// Times training steps of a small dense model on host<float>: forward, backward, clipping, AdamW.
//   host_step [threads] [steps]
// Prints one line of JSON: the least and the median step, and where the time of the last step went, in milliseconds.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "sdepth/kernels/host/host.hpp"
#include "sdepth/pipeline.hpp"
#include "sdepth/sdepth.hpp"

using namespace sdepth;
using namespace sdepth::literals;

namespace {

using timer = std::chrono::steady_clock;
double since(timer::time_point start) {
    return std::chrono::duration<double, std::milli>(timer::now() - start).count();
}

// host<float> that adds up the time of each operation.
class timed_host : public host<float> {
  public:
    using host<float>::host;
    std::map<std::string, double> parts;

    void linear(const LinearArgs<precision>& a) {
        time("linear", [&] { host::linear(a); });
    }
    void linear_backward(const LinearBackwardArgs<precision>& a) {
        time("linear_backward", [&] { host::linear_backward(a); });
    }
    void attention(const AttentionArgs<float>& a) {
        time("attention", [&] { host::attention(a); });
    }
    void attention_backward(const AttentionBackwardArgs<float>& a) {
        time("attention_backward", [&] { host::attention_backward(a); });
    }
    void qk_prepare(const QkPrepareArgs<precision>& a) {
        time("qk_prepare", [&] { host::qk_prepare(a); });
    }
    void qk_prepare_backward(const QkPrepareBackwardArgs<precision>& a) {
        time("qk_prepare_backward", [&] { host::qk_prepare_backward(a); });
    }
    void swiglu(const SwigluArgs<precision>& a) {
        time("swiglu", [&] { host::swiglu(a); });
    }
    void swiglu_backward(const SwigluBackwardArgs<precision>& a) {
        time("swiglu_backward", [&] { host::swiglu_backward(a); });
    }
    void rms_norm(const RmsNormArgs<precision>& a) {
        time("rms_norm", [&] { host::rms_norm(a); });
    }
    void rms_norm_backward(const RmsNormBackwardArgs<precision>& a) {
        time("rms_norm_backward", [&] { host::rms_norm_backward(a); });
    }
    void gather(const GatherArgs<precision>& a) {
        time("rows", [&] { host::gather(a); });
    }
    void scatter(const ScatterArgs<precision>& a) {
        time("rows", [&] { host::scatter(a); });
    }
    void add(const AddArgs<precision>& a) {
        time("rows", [&] { host::add(a); });
    }
    void scatter_residual(const ScatterResidualArgs<precision>& a) {
        time("rows", [&] { host::scatter_residual(a); });
    }
    void scatter_residual_backward(const ScatterResidualBackwardArgs<precision>& a) {
        time("rows", [&] { host::scatter_residual_backward(a); });
    }
    void embed(const EmbedArgs<precision>& a) {
        time("embed", [&] { host::embed(a); });
    }
    void embed_backward(const EmbedBackwardArgs<precision>& a) {
        time("embed", [&] { host::embed_backward(a); });
    }
    void head_loss(const HeadLossArgs<precision>& a) {
        time("head_loss", [&] { host::head_loss(a); });
    }
    void squares(const SquaresArgs<precision>& a) {
        time("update", [&] { host::squares(a); });
    }
    void adamw(const AdamwArgs<precision>& a) {
        time("update", [&] { host::adamw(a); });
    }

  private:
    template <class F>
    void time(const char* part, const F& f) {
        const auto start = timer::now();
        f();
        parts[part] += since(start);
    }
};

using M = Model<dense * 8_c, Dims{.width = 256, .head_dim = 64, .heads = 4, .kv_heads = 4, .ffn = 768, .vocab = 256}>;
constexpr Run run{.seq = 512, .batch = 8};

}  // namespace

int main(int argc, char** argv) {
    timed_host backend(argc > 1 ? std::atoi(argv[1]) : 2);
    const int steps = argc > 2 ? std::atoi(argv[2]) : 10;
    pipeline<M, timed_host, run> model(backend);
    model.initialise(1);
    std::vector<int> tokens(run.seq * run.batch), targets(tokens.size());
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        tokens[i] = static_cast<int>(random_words(1, random_use::check, 0, i).word[0] % 256);
        targets[i] = static_cast<int>(random_words(1, random_use::check, 1, i).word[0] % 256);
    }
    const step_totals totals{run.seq * run.batch, run.seq * run.batch};
    std::vector<double> times;
    for (int step = 1; step <= steps + 1; ++step) {
        backend.parts.clear();
        const auto start = timer::now();
        model.accumulate({.tokens = tokens.data(), .targets = targets.data()}, totals);
        model.update({.step = step}, totals);
        if (step > 1) times.push_back(since(start));
    }
    std::sort(times.begin(), times.end());
    constexpr auto useful = static_cast<double>(flops<M, run>.useful.value() * run.batch);
    std::printf("{\"threads\": %d, \"least\": %.1f, \"median\": %.1f, \"useful_gflops\": %.1f", backend.threads(),
                times.front(), times[times.size() / 2], useful / times.front() * 1e-6);
    for (const auto& [part, time] : backend.parts) std::printf(", \"%s\": %.1f", part.c_str(), time);
    std::printf("}\n");
}
