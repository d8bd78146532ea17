// SPDX-License-Identifier: MIT
#include "bench.cuh"

namespace sdepth_bench {

measured bench_a4k8(const bench_request& ask) { return bench<A4K8, long_run>("556M", ask); }
measured bench_a3k16(const bench_request& ask) { return bench<A3K16, long_run>("556M", ask); }

}  // namespace sdepth_bench
