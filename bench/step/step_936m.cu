// SPDX-License-Identifier: MIT
// A3K16 on the 936M backbone: 8.24 billion parameters, 14 bytes each with Muon.
#include "bench.cuh"

namespace sdepth_bench {

namespace {

constexpr long long card = 150'000'000'000;  // of an H200's 141 GiB, what is left beside CUDA's own

template <recompute Replay>
constexpr Run replaying = [] {
    Run r = long_run;
    r.replay = Replay;
    r.moments = optimiser::muon;
    return r;
}();
// The policy that computes least again, of those that fit.
constexpr bool keeps_some = plan<A3K16of936, timed_cuda, replaying<recompute::selective>>::peak_bytes <= card;
constexpr Run run = keeps_some ? replaying<recompute::selective> : replaying<recompute::full>;
static_assert(plan<A3K16of936, timed_cuda, run>::peak_bytes <= card);

}  // namespace

measured bench_936m(const bench_request& ask) {
    bench_request named = ask;
    named.name = "a3k16";
    return bench<A3K16of936, run>("936M", named);
}

}  // namespace sdepth_bench
