// SPDX-License-Identifier: MIT
// Routing statistics on masks made by hand.
#include "sdepth/routing_statistics.hpp"

#include "support/catch.hpp"

using namespace sdepth;

TEST_CASE("rate, coverage, overlap, updates and agreement of two layers and four rows") {
    route_observer observer;
    const int rows[] = {4};
    const int live[] = {2};
    const int first[] = {0, 1}, second[] = {1, 2};
    const float agree[] = {1, 1, -1, -1}, differ[] = {1, 1, -1, -1};  // the second layer's u disagrees on rows 0 and 2
    observer.observe(3, 2, 1, 4, 2, first, live, agree, rows);
    observer.observe(4, 2, 1, 4, 2, second, live, differ, rows);
    const route_report report = observer.report();
    CHECK(report.rate == Approx(0.5));
    CHECK(report.agreement == Approx(6.0 / 8));
    CHECK(report.coverage == Approx(3.0 / 4));
    CHECK(report.jaccard == Approx(1.0 / 3));
    CHECK(report.updates == std::vector<double>{0.25, 0.5, 0.25});
    CHECK(report.rate_of_layer == std::vector<double>{0.5, 0.5});
}

TEST_CASE("an anchor between two sparse layers ends a stretch, and padding does not count") {
    route_observer observer;
    const int rows[] = {3};  // of 4
    const int live[] = {1};
    const int first[] = {0}, second[] = {2};
    const float logits[] = {1, -1, -1, 1};
    observer.observe(1, 4, 1, 4, 1, first, live, logits, rows);
    observer.observe(3, 4, 1, 4, 1, second, live, logits, rows);
    observer.end_batch();
    const route_report report = observer.report();
    CHECK(report.rate == Approx(1.0 / 3));
    CHECK(report.coverage == Approx(1.0 / 3));
    CHECK(report.jaccard == 0);
    CHECK(report.updates == std::vector<double>{4.0 / 6, 2.0 / 6});
    CHECK(report.agreement == Approx(4.0 / 6));
}

TEST_CASE("routing statistics: with K = 1 both rules take every row", "[routing]") {
    route_observer observer;
    const int ids[] = {0, 1, 2}, live[] = {3}, rows[] = {3};
    const double logits[] = {-1, 1, -2, 0};
    observer.observe(0, 1, 1, 4, 4, ids, live, logits, rows);
    CHECK(observer.report().agreement == 1);
}
