// SPDX-License-Identifier: MIT
// What trainers print: the model and its memory, one line of progress, an evaluation; and Ctrl-C as a request to stop.
#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "sdepth/sdepth.hpp"
#include "sdepth/trainer.hpp"

namespace examples {

/// Set by Ctrl-C (SIGINT), SIGTERM or SIGHUP: the step is finished, the run saved. A second one ends the program at
/// once.
inline std::atomic<bool>& stop_requested() {
    static std::atomic<bool> stop{false};
    return stop;
}
inline void stop_on_interrupt() {
    const auto handler = [](int signal) {
        stop_requested() = true;
        std::signal(signal, SIG_DFL);
        constexpr char text[] = "stopping after this step; once more ends at once, without a save\n";
        [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, sizeof text - 1);
    };
    for (const int signal : {SIGINT, SIGTERM, SIGHUP}) std::signal(signal, handler);
}

/// In what a resumed run goes on otherwise than it was saved.
inline void print_differences(const std::vector<std::string>& differences) {
    for (const std::string& text : differences) std::printf("goes on otherwise: %s\n", text.c_str());
}

/// What a run that did not go its whole way says, and one that had no way left.
inline void print_end(const sdepth::training_state& at, const std::filesystem::path& checkpoint) {
    if (at.step < at.steps) {
        std::printf("stopped after step %lld%s\n", at.step,
                    checkpoint.empty() ? "; nothing was saved, for no --checkpoint was named" : "; --resume goes on");
    } else if (stop_requested()) {
        std::printf("stopped after the last step%s\n", checkpoint.empty() ? "" : "; --resume evaluates");
    }
}

/// FLOP/s of a large matrix product on this backend, the peak that progress is a share of.
template <class Backend>
double measured_peak(Backend& backend) {
    using T = typename Backend::precision;
    constexpr int n = 1024;
    constexpr double flop = 2.0 * n * n * n;
    typename T::activation *x = nullptr, *y = nullptr;
    typename T::weight* w = nullptr;
    sdepth::carver sizes;
    sizes(x, n * n), sizes(y, n * n), sizes(w, n * n);
    auto memory = backend.allocate(static_cast<std::size_t>(sizes.bytes()));
    sdepth::carver take(memory.data());
    take(x, n * n), take(y, n * n), take(w, n * n);
    std::vector<typename T::activation> values(n * n);
    for (std::size_t i = 0; i < values.size(); ++i) {
        values[i] = static_cast<typename T::activation>(
            sdepth::random_normal(1, sdepth::random_use::check, 0, static_cast<std::uint64_t>(i)));
    }
    sdepth::write(backend, x, values.data(), n * n);
    sdepth::write(backend, w, reinterpret_cast<typename T::weight*>(values.data()), n * n);
    double best = 0;
    for (int i = 0; i < 5; ++i) {
        const auto begin = std::chrono::steady_clock::now();
        backend.linear({.rows = {1, {n, nullptr}}, .inputs = n, .outputs = n, .x = x, .weight = w, .y = y});
        sdepth::read(backend, values.data(), y, 1);  // waits for the product
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
        if (flop / spent.count() > best) best = flop / spent.count();
    }
    return best;
}

/// Counts of the model and bytes of the plan.
template <class Pipeline>
void print_model() {
    using M = typename Pipeline::model;
    using memory = sdepth::plan<M, typename Pipeline::backend_type, Pipeline::run_sizes>;
    constexpr auto counts = sdepth::params<M>;
    constexpr double mib = 1024.0 * 1024.0;
    std::printf("%lld layers, %lld parameters, %.0f active a token\n", M::layers, counts.total, counts.active.value());
    const auto in_mib = [](long long bytes) { return static_cast<double>(bytes) / mib; };
    std::printf("memory %.1f MiB: parameters %.1f, batch %.1f, layers %.1f (saved %.1f, scratch %.1f), workspace %.1f",
                in_mib(memory::peak_bytes), in_mib(memory::parameter_bytes), in_mib(memory::batch_bytes),
                in_mib(memory::layer_region_bytes), in_mib(memory::saved_bytes), in_mib(memory::scratch_bytes),
                in_mib(memory::workspace_bytes));
    if (memory::slot_bytes > 0) std::printf(", depth slots %.1f", in_mib(memory::slot_bytes));
    std::printf("\n");
}

/// "3:07" or "1:02:33".
inline std::string clock_text(double seconds) {
    const auto s = static_cast<long long>(seconds + 0.5);
    char text[32];
    if (s < 3600) {
        std::snprintf(text, sizeof text, "%lld:%02lld", s / 60, s % 60);
    } else {
        std::snprintf(text, sizeof text, "%lld:%02lld:%02lld", s / 3600, s / 60 % 60, s % 60);
    }
    return text;
}

inline void print_progress(const sdepth::progress& now, long long steps, double useful_per_token, double peak) {
    std::printf("step %5lld/%lld  loss %.4f  route %.4f", now.step, steps, now.losses.language, now.losses.routing);
    if (!now.losses.experts.empty()) {
        std::printf("  balance %.3f  most loaded %.2f x  dropped %.1f %%", now.losses.balance,
                    sdepth::expert_load::worst_imbalance(now.losses.experts),
                    100 * sdepth::expert_load::dropped_share(now.losses.experts));
    }
    std::printf("  norm %.2f  rate %.2e  %6.0f tok/s  %4.1f %% of peak  %s left\n", now.losses.gradient_norm, now.rate,
                now.tokens_per_second, 100 * now.tokens_per_second * useful_per_token / peak,
                clock_text(now.seconds_left).c_str());
    std::fflush(stdout);
}

/// Both rules side by side, and what the masks did beside what independent choices would do.
template <class M>
void print_evaluation(long long step, const sdepth::evaluation& e) {
    if constexpr (sdepth::is_causal<M>) {
        std::printf("step %5lld  held-out loss %.4f nats/token (causal)", step, e.causal);
    } else {
        std::printf("step %5lld  held-out loss %.4f nats/token, by routers that see the future", step, e.top);
    }
    if constexpr (sdepth::sparse_layers < M >> 0) {
        constexpr sdepth::independent_routing independent = sdepth::independent_reference<M>();
        const sdepth::route_report& masks = e.causal_route;
        std::printf(", %.4f (training rule), gap %+.4f\n", e.top, e.gap());
        std::printf("            masks agree on %.3f of rows, %.3f of the chosen differ; rate %.3f of 1/K %.3f\n",
                    e.top_route.agreement,
                    sdepth::disagreement_among_chosen(e.top_route.agreement, independent.sparsity), masks.rate,
                    independent.share());
        std::printf("            coverage %.3f (independent %.3f), Jaccard %.3f (%.3f), updates", masks.coverage,
                    independent.coverage(), masks.jaccard, independent.jaccard());
        for (std::size_t n = 0; n < masks.updates.size(); ++n) {
            std::printf(" %.3f (%.3f)", masks.updates[n], independent.updates(static_cast<long long>(n)));
        }
    }
    std::printf("\n");
    for (const sdepth::expert_load& layer : e.experts) {
        std::printf("            layer %lld: most loaded expert %.2f x the mean, router entropy %.3f of %.3f nats\n",
                    layer.layer, layer.imbalance(), layer.entropy, std::log(static_cast<double>(layer.load.size())));
    }
    for (const sdepth::depth_mass& layer : e.depth) {
        std::printf("            layer %lld: %.3f of attention on depth slots (even logits %.3f), by head", layer.layer,
                    layer.share(), layer.share_if_even());
        for (std::size_t head = 0; head < layer.heads(); ++head) std::printf(" %.3f", layer.share(head));
        std::printf("\n");
    }
    std::fflush(stdout);
}

}  // namespace examples
