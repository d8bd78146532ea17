// SPDX-License-Identifier: MIT
// The CUDA backend with the time of each operation, for a table of where a step goes.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "sdepth/cuda.cuh"

namespace sdepth_bench {

/// Times operations while `start` to `report`; otherwise it is `sdepth::cuda<>`.
class timed_cuda : public sdepth::cuda<> {
    using base = sdepth::cuda<>;

  public:
    using base::base;

    void start() { timing_ = true; }
    /// Prints milliseconds and calls of each operation, most time first.
    void report() {
        timing_ = false;
        wait();
        std::map<std::string, std::pair<double, int>> sums;
        double all = 0;
        for (const span& s : spans_) {
            float ms = 0;
            sdepth::on_cuda::check(cudaEventElapsedTime(&ms, s.begin, s.end), "bench");
            auto& sum = sums[s.name];
            sum.first += static_cast<double>(ms), ++sum.second;
            all += static_cast<double>(ms);
            cudaEventDestroy(s.begin), cudaEventDestroy(s.end);
        }
        spans_.clear();
        std::vector<std::pair<std::string, std::pair<double, int>>> rows(sums.begin(), sums.end());
        std::sort(rows.begin(), rows.end(),
                  [](const auto& a, const auto& b) { return a.second.first > b.second.first; });
        for (const auto& [name, sum] : rows)
            std::printf("  %-40s %9.3f ms %5.1f %% %6d calls %9.1f us\n", name.c_str(), sum.first,
                        100 * sum.first / all, sum.second, 1e3 * sum.first / sum.second);
        std::printf("  %-40s %9.3f ms\n", "all", all);
    }

    void zero(void* to, std::size_t bytes) {
        time("zero", [&] { base::zero(to, bytes); });
    }
    void linear(const sdepth::LinearArgs<precision>& a) {
        time(std::string("linear ") + std::to_string(a.rows.capacity()) + " x " + std::to_string(a.outputs) + " x " +
                 std::to_string(a.inputs),
             [&] { base::linear(a); });
    }
    void linear_backward(const sdepth::LinearBackwardArgs<precision>& a) {
        time(std::string("linear_backward ") + std::to_string(a.forward.rows.capacity()) + " x " +
                 std::to_string(a.forward.outputs) + " x " + std::to_string(a.forward.inputs),
             [&] { base::linear_backward(a); });
    }
    void rms_norm(const sdepth::RmsNormArgs<precision>& a) {
        time("rms_norm", [&] { base::rms_norm(a); });
    }
    void rms_norm_backward(const sdepth::RmsNormBackwardArgs<precision>& a) {
        time("rms_norm_backward", [&] { base::rms_norm_backward(a); });
    }
    void gather(const sdepth::GatherArgs<precision>& a) {
        time("gather", [&] { base::gather(a); });
    }
    void gather_rms_norm(const sdepth::GatherArgs<precision>& g, const sdepth::RmsNormArgs<precision>& a) {
        time("gather_rms_norm", [&] { base::gather_rms_norm(g, a); });
    }
    void add_rms_norm(const sdepth::AddArgs<precision>& s, const sdepth::RmsNormArgs<precision>& a) {
        time("add_rms_norm", [&] { base::add_rms_norm(s, a); });
    }
    void scatter(const sdepth::ScatterArgs<precision>& a) {
        time("scatter", [&] { base::scatter(a); });
    }
    void add(const sdepth::AddArgs<precision>& a) {
        time("add", [&] { base::add(a); });
    }
    void qk_prepare(const sdepth::QkPrepareArgs<precision>& a) {
        time("qk_prepare", [&] { base::qk_prepare(a); });
    }
    void qk_prepare_backward(const sdepth::QkPrepareBackwardArgs<precision>& a) {
        time("qk_prepare_backward", [&] { base::qk_prepare_backward(a); });
    }
    void attention(const sdepth::AttentionArgs<__nv_bfloat16>& a) {
        time(std::string("attention ") + std::to_string(a.queries.capacity), [&] { base::attention(a); });
    }
    void attention_backward(const sdepth::AttentionBackwardArgs<__nv_bfloat16>& a) {
        time(std::string("attention_backward ") + std::to_string(a.forward.queries.capacity),
             [&] { base::attention_backward(a); });
    }
    void prepared_attention_backward(const sdepth::AttentionBackwardArgs<__nv_bfloat16>& a,
                                     const sdepth::QkPrepareBackwardArgs<precision>& queries) {
        time(std::string("attention_backward ") + std::to_string(a.forward.queries.capacity),
             [&] { base::prepared_attention_backward(a, queries); });
    }
    void swiglu(const sdepth::SwigluArgs<precision>& a) {
        time("swiglu", [&] { base::swiglu(a); });
    }
    void swiglu_backward(const sdepth::SwigluBackwardArgs<precision>& a) {
        time("swiglu_backward", [&] { base::swiglu_backward(a); });
    }
    void activation(const sdepth::ActivationArgs<precision>& a) {
        time("activation", [&] { base::activation(a); });
    }
    void activation_backward(const sdepth::ActivationBackwardArgs<precision>& a) {
        time("activation_backward", [&] { base::activation_backward(a); });
    }
    void embed(const sdepth::EmbedArgs<precision>& a) {
        time("embed", [&] { base::embed(a); });
    }
    void embed_backward(const sdepth::EmbedBackwardArgs<precision>& a) {
        time("embed_backward", [&] { base::embed_backward(a); });
    }
    void head_loss(const sdepth::HeadLossArgs<precision>& a) {
        time("head_loss", [&] { base::head_loss(a); });
    }
    void route_logits(const sdepth::RouteLogitsArgs<precision>& a) {
        time("route_logits", [&] { base::route_logits(a); });
    }
    void route_logits_backward(const sdepth::RouteLogitsBackwardArgs<precision>& a) {
        time("route_logits_backward", [&] { base::route_logits_backward(a); });
    }
    void route_version_logits(const sdepth::RouteVersionLogitsArgs<precision>& a) {
        time("route_version_logits", [&] { base::route_version_logits(a); });
    }
    void route_version_backward(const sdepth::RouteVersionBackwardArgs<precision>& a) {
        time("route_version_backward", [&] { base::route_version_backward(a); });
    }
    void select(const sdepth::SelectArgs<precision>& a) {
        time("select", [&] { base::select(a); });
    }
    void visibility(const sdepth::VisibilityArgs& a) {
        time("visibility", [&] { base::visibility(a); });
    }
    void scatter_residual(const sdepth::ScatterResidualArgs<precision>& a) {
        time("scatter_residual", [&] { base::scatter_residual(a); });
    }
    void scatter_residual_backward(const sdepth::ScatterResidualBackwardArgs<precision>& a) {
        time("scatter_residual_backward", [&] { base::scatter_residual_backward(a); });
    }
    void route_loss(const sdepth::RouteLossArgs<precision>& a) {
        time("route_loss", [&] { base::route_loss(a); });
    }
    void positions(const sdepth::PositionsArgs& a) {
        time("positions", [&] { base::positions(a); });
    }
    void cache(const sdepth::CacheArgs<precision>& a) {
        time("cache", [&] { base::cache(a); });
    }
    void track_cut(const sdepth::TrackCutArgs<precision>& a) {
        time("track_cut", [&] { base::track_cut(a); });
    }
    void initialise(const sdepth::InitialArgs<precision>& a) {
        time("initialise", [&] { base::initialise(a); });
    }
    void squares(const sdepth::SquaresArgs<precision>& a) {
        time("squares", [&] { base::squares(a); });
    }
    void begin_update(const sdepth::BeginUpdateArgs& a) {
        time("begin_update", [&] { base::begin_update(a); });
    }
    void adamw(const sdepth::AdamwArgs<precision>& a) {
        time("adamw", [&] { base::adamw(a); });
    }
    void muon(const sdepth::MuonArgs<precision>& a) {
        time("muon", [&] { base::muon(a); });
    }

  private:
    struct span {
        std::string name;
        cudaEvent_t begin, end;
    };
    template <class F>
    void time(std::string name, F f) {
        if (!timing_) return f();
        span s{std::move(name), nullptr, nullptr};
        sdepth::on_cuda::check(cudaEventCreate(&s.begin), "bench");
        sdepth::on_cuda::check(cudaEventCreate(&s.end), "bench");
        sdepth::on_cuda::check(cudaEventRecord(s.begin, stream()), "bench");
        f();
        sdepth::on_cuda::check(cudaEventRecord(s.end, stream()), "bench");
        spans_.push_back(std::move(s));
    }

    bool timing_ = false;
    std::vector<span> spans_;
};

}  // namespace sdepth_bench
