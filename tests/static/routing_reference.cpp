// SPDX-License-Identifier: MIT
// The analytic routing references against the X-MoD paper's Table 10.
#include "sdepth/routing_reference.hpp"

namespace {

using namespace sdepth;

// A share in per cent with `digits` as the unit, rounded.
constexpr long long per_cent(double share, long long digits) {
    return static_cast<long long>(share * 100 * static_cast<double>(digits) + 0.5);
}
constexpr bool near(double a, double b) { return (a < b ? b - a : a - b) < 1e-14; }

// A1K16 in stretches of 16 layers, A4K8 in 32, A3K16 in 48.
constexpr independent_routing a1k16{16, 16}, a4k8{8, 32}, a3k16{16, 48};
static_assert(per_cent(a1k16.coverage(), 100) == 64'39);  // 64.39
static_assert(per_cent(a4k8.coverage(), 100) == 98'61);   // 98.61
static_assert(per_cent(a3k16.coverage(), 100) == 95'49);  // 95.49
static_assert(per_cent(a1k16.jaccard(), 1000) == 3'226);  // 3.226
static_assert(per_cent(a4k8.jaccard(), 1000) == 6'667);   // 6.667
static_assert(per_cent(a3k16.jaccard(), 1000) == 3'226);  // 3.226

constexpr repeated_routing same16{16, 16}, same8{8, 32};
static_assert(per_cent(same16.coverage(), 1000) == 6'250);  // 6.250
static_assert(per_cent(same8.coverage(), 1000) == 12'500);  // 12.50
static_assert(same16.jaccard() == 1);
static_assert(same16.updates(16) == 1.0 / 16 && same16.updates(0) == 15.0 / 16 && same16.updates(8) == 0);

// The distribution of updates adds up to 1 and has mean T p; chosen at least once is coverage.
constexpr double sum(const independent_routing& r, bool weighted) {
    double total = 0;
    for (long long i = 0; i <= r.layers; ++i) total += r.updates(i) * (weighted ? static_cast<double>(i) : 1);
    return total;
}
static_assert(near(sum(a4k8, false), 1) && near(sum(a3k16, false), 1));
static_assert(near(sum(a4k8, true), 4) && near(sum(a3k16, true), 3) && near(sum(a1k16, true), 1));
static_assert(near(1 - a4k8.updates(0), a4k8.coverage()));
static_assert(near(independent_routing{2, 3}.updates(2), 3.0 / 8));
static_assert(a4k8.updates(33) == 0 && a4k8.updates(-1) == 0);
static_assert(independent_routing{1, 5}.coverage() == 1 && independent_routing{1, 5}.updates(5) == 1);
static_assert(independent_routing{8, 0}.coverage() == 0 && repeated_routing{8, 0}.coverage() == 0);

// Disagreement of 1.37, 3.38 and 1.75 % of all tokens is 11, 14 and 14 % of the chosen ones.
static_assert(per_cent(disagreement_among_chosen(0.9863, 16), 1) == 11);
static_assert(per_cent(disagreement_among_chosen(0.9662, 8), 1) == 14);
static_assert(per_cent(disagreement_among_chosen(0.9825, 16), 1) == 14);

}  // namespace
