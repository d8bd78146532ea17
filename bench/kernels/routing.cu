// SPDX-License-Identifier: MIT
// Selection of rows, and the chain of a sparse layer before its block: changed logits, selection, gather and norm. One
// JSON row a line. The selection is looked at first: its ids against a sort on the host.
#include <algorithm>
#include <cstdio>
#include <numeric>
#include <string>

#include "sdepth/kernels/cuda/norm.cuh"
#include "sdepth/kernels/cuda/route_version_logits.cuh"
#include "sdepth/kernels/cuda/select.cuh"
#include "sdepth/precision.hpp"
#include "timing.cuh"

namespace {

using namespace sdepth_bench;
namespace cuda = sdepth::on_cuda;
using stored = sdepth::precision<bf16, float, float, bf16, float>;

constexpr int length = 32768, chosen = 4096, sparsity = 8, width = 1024;

struct selection {
    device_array<float> logits, bias, u, cut;
    device_array<int> ids, live;
    device_array<double> cut_sum;
    device_array<long long> cut_groups;
    device_array<unsigned char> scratch;
    sdepth::SelectArgs<stored> args;

    explicit selection(int batch)
        : logits(std::size_t(batch) * length, 1u),
          bias(std::size_t(batch) * length),
          u(logits.size()),
          cut(1),
          ids(std::size_t(batch) * chosen),
          live(std::size_t(batch)),
          cut_sum(1),
          cut_groups(1),
          scratch(cuda::select_scratch(batch, length, false)) {
        check(cudaMemset(bias.data(), 0, bias.size() * sizeof(float)), "bench");
        check(cudaMemset(cut.data(), 0, sizeof(float)), "bench");
        check(cudaMemset(cut_sum.data(), 0, sizeof(double)), "bench");
        check(cudaMemset(cut_groups.data(), 0, sizeof(long long)), "bench");
        args = {.rows = {batch, {length}},
                .capacity = chosen,
                .sparsity = sparsity,
                .logits = logits.data(),
                .bias = bias.data(),
                .cut = cut.data(),
                .u = u.data(),
                .ids = ids.data(),
                .live = live.data(),
                .cut_sum = cut_sum.data(),
                .cut_groups = cut_groups.data()};
    }
    void run() { cuda::select<cuda::hopper>(args, scratch.data(), nullptr); }
    void look() {
        run();
        const std::vector<float> s = logits.read();
        const std::vector<int> got = ids.read();
        for (int b = 0; b < args.rows.batch; ++b) {
            const float* v = s.data() + std::size_t(b) * length;
            std::vector<int> order(length);
            std::iota(order.begin(), order.end(), 0);
            std::stable_sort(order.begin(), order.end(), [v](int i, int j) { return v[i] > v[j]; });
            std::sort(order.begin(), order.begin() + chosen);
            if (!std::equal(order.begin(), order.begin() + chosen, got.begin() + std::ptrdiff_t(b) * chosen))
                throw sdepth::error("bench: select chose other rows than a sort; run the GPU tests first");
        }
    }
};

void row(const char* name, const timing& t) {
    std::printf("{\"name\": \"%s\", \"ours\": %.2f, \"unit\": \"us\", \"spread\": %.3f}\n", name, t.median * 1e3,
                t.spread);
    std::fflush(stdout);
}

// Not a result, but where it comes from.
void part(const std::string& name, const timing& t) { std::printf("# %s %.2f us\n", name.c_str(), t.median * 1e3); }

// In the middle of a run: the rows that the layer before changed are read by the routers of half the run, then this
// layer chooses.
void chain() {
    constexpr int layers = 32, middle = layers / 2;
    selection s(1);
    s.look();
    const std::size_t n = std::size_t{length} * width, few = std::size_t{chosen} * width;
    device_array<bf16> x(n, 1u), packed(few), normed(few);
    device_array<float> routers(std::size_t{layers} * width, 2u), norm_weight(width, 3u), rstd(chosen);
    device_array<float> logits(std::size_t{layers} * length, 4u);
    s.args.logits = logits.data() + std::ptrdiff_t{middle} * length;
    sdepth::RouteVersionLogitsArgs<stored> changed{.rows = {1, {chosen}},
                                                   .sequence = length,
                                                   .width = width,
                                                   .layers = layers,
                                                   .first = middle,
                                                   .ids = s.ids.data(),
                                                   .x = x.data(),
                                                   .weight = routers.data(),
                                                   .stride = width,
                                                   .logits = logits.data(),
                                                   .logits_stride = length};
    const sdepth::GatherArgs<stored> g{.rows = {1, {chosen}},
                                       .sequence = length,
                                       .width = width,
                                       .ids = s.ids.data(),
                                       .x = x.data(),
                                       .out = packed.data()};
    const sdepth::RmsNormArgs<stored> norm{.rows = {1, {chosen}},
                                           .width = width,
                                           .x = packed.data(),
                                           .weight = norm_weight.data(),
                                           .y = normed.data(),
                                           .rstd = rstd.data()};
    row("routing_chain/556M/k8", time_graph_ms([&](cudaStream_t stream) {
            cuda::route_version_logits(changed, stream);
            cuda::select<cuda::hopper>(s.args, s.scratch.data(), stream);
            cuda::gather_rms_norm(g, norm, stream);
        }));
    part("routing_chain/gather_norm", time_graph_ms([&](cudaStream_t st) { cuda::gather_rms_norm(g, norm, st); }));
    for (const int left : {layers - 1, middle, 1}) {
        changed.first = layers - left;
        part("routing_chain/logits/" + std::to_string(left),
             time_graph_ms([&](cudaStream_t st) { cuda::route_version_logits(changed, st); }));
    }
}

}  // namespace

__global__ void nothing() {}

int main() {
    part("empty_kernel", time_graph_ms([](cudaStream_t stream) { nothing<<<1, 32, 0, stream>>>(); }));
    for (const int batch : {1, 8}) {
        selection s(batch);
        s.look();
        row(("select/4096of32768/x" + std::to_string(batch)).c_str(),
            time_graph_ms([&](cudaStream_t stream) { cuda::select<cuda::hopper>(s.args, s.scratch.data(), stream); }));
        part("select_twice/4096of32768/x" + std::to_string(batch), time_graph_ms([&](cudaStream_t stream) {
                 cuda::select<cuda::hopper>(s.args, s.scratch.data(), stream);
                 cuda::select<cuda::hopper>(s.args, s.scratch.data(), stream);
             }));
        part("select_launch/4096of32768/x" + std::to_string(batch), time_ms([&] { s.run(); }));
    }
    chain();
}
