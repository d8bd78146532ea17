// SPDX-License-Identifier: MIT
#include "bench.cuh"

namespace sdepth_bench {

measured bench_dense(const bench_request& ask) { return bench<Dense556, long_run>("556M", ask); }
measured bench_mod(const bench_request& ask) { return bench<MoD556, long_run>("556M", ask); }

}  // namespace sdepth_bench
