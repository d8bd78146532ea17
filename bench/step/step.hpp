// SPDX-License-Identifier: MIT
// The models of bench/step, a translation unit for each one or two: all together take nvcc longer than a minute.
#pragma once

#include <string>

namespace sdepth_bench {

struct bench_request {
    std::string name;
    int steps = 5;
    bool profile = false;  ///< print where one step goes, and no rows
    bool aside = true;     ///< see cuda_settings
};
struct measured {
    double forward_backward = 0;  ///< ms
    double flops = 0;             ///< executed, without replay
};

measured bench_dense(const bench_request& ask);
measured bench_mod(const bench_request& ask);
measured bench_a4k8(const bench_request& ask);
measured bench_a3k16(const bench_request& ask);
measured bench_936m(const bench_request& ask);

}  // namespace sdepth_bench
