// SPDX-License-Identifier: MIT
// The law beside measured runs: residuals against a dense curve, errors, the exposure term, rank by time, the report.
#include "sdepth/law.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "sdepth/law_runs.hpp"
#include "support/catch.hpp"

namespace {

using namespace sdepth;

law_point at(double active, double seq, double sparsity, double stride) {
    return {active, seq, sparsity, stride, capacity_ratio(sparsity, stride)};
}

const std::vector<dense_run> curve{{1e19, 3.0}, {4e19, 2.8}, {16e19, 2.7}};

std::string message_of(auto&& call) {
    try {
        call();
    } catch (const error& e) {
        return e.what();
    }
    return {};
}

}  // namespace

TEST_CASE("law: the power function agrees with the standard library's") {
    // e^y inherits the rounding of y = exponent * ln x, so the bound grows with |y|.
    double worst = 0;
    for (double x = 1e-4; x < 1e21; x *= 1.37) {
        for (double exponent = -1.3; exponent < 1.3; exponent += 0.17) {
            const double miss = std::abs(detail::power_of(x, exponent) / std::pow(x, exponent) - 1);
            worst = std::max(worst, miss / (1 + std::abs(exponent * std::log(x))));
        }
    }
    CHECK(worst / std::numeric_limits<double>::epsilon() < 2);
}

TEST_CASE("law: sizes that are not positive are refused") {
    for (const double bad : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
        CHECK_THROWS_AS(residual(at(bad, 32768, 8, 1)), error);
        CHECK_THROWS_AS(residual(at(556e6, bad, 8, 1)), error);
        CHECK_THROWS_AS(residual(at(556e6, 32768, bad, 1)), error);
    }
    CHECK_THROWS_AS(residual(at(556e6, 32768, 8, 0)), error);
}

TEST_CASE("law: a dense run on the curve has residual 0") {
    for (const dense_run& run : curve) CHECK(matched_residual(run.loss, run.flops, curve) == 0);
    CHECK(dense_loss(curve, 2e19) == Approx(2.9).epsilon(1e-12));  // half way in log FLOPs
    CHECK(matched_residual(2.6, 8e19, curve) == Approx(-0.15).epsilon(1e-12));
}

TEST_CASE("law: the dense curve is not extrapolated") {
    CHECK(message_of([] { dense_loss(curve, 1e18); }) ==
          "sdepth: no dense run on both sides of 1e+18 FLOPs: train a dense reference there");
    CHECK_THROWS_AS(dense_loss(curve, 2e20), error);
    CHECK_THROWS_AS(dense_loss({}, 1e19), error);
    const std::vector<dense_run> falling{{4e19, 2.8}, {1e19, 3.0}};
    CHECK_THROWS_AS(dense_loss(falling, 2e19), error);
}

TEST_CASE("law: the candidate law is never worse on its own points") {
    // Observed = the law plus a term that grows with K, then the same with the opposite sign.
    for (const double sign : {1.0, -1.0}) {
        std::vector<observed_residual> observed;
        for (const double k : {4.0, 8.0, 12.0, 16.0}) {
            for (const double a : {1.0, 3.0, 5.0}) {
                law_point p = at(165e6, 32768, k, a);
                p.token_ratio = law_flops{.linear = 30, .mixing = 16, .width = 512}.exposure(32768, k, a) * k;
                p.dense_tokens = 4e9;
                observed.push_back({p, residual(p) + sign * 0.01 * std::sqrt(k)});
            }
        }
        residual_law candidate;
        candidate.eta_d = 0.05;
        candidate.rho_d = 0.3;
        const residual_law fitted = with_exposure(observed, candidate);
        CHECK(rmse_of(observed, fitted) <= rmse_of(observed));
        if (sign > 0) {
            CHECK(fitted.v > 0);
            CHECK(rmse_of(observed, fitted) < 0.5 * rmse_of(observed));
        } else {
            CHECK(fitted.v == 0);  // weights are not negative
        }
    }
    CHECK_THROWS_AS(rmse_of({}), error);
}

TEST_CASE("law: time at equal FLOPs, from tokens and speed") {  // Tables 7 and 11
    struct row {
        double token_ratio, speed, printed;
    };
    const row rows[] = {
        {1.00, 0.041, 1.00}, {1.00, 0.027, 1.52}, {1.96, 0.052, 1.55}, {1.00, 0.023, 1.78}, {2.00, 0.039, 2.10}};
    double times[5];
    for (int i = 0; i < 5; ++i) {
        times[i] = relative_time(rows[i].token_ratio, rows[i].speed, 0.041);
        CHECK(std::round(times[i] * 100) == std::round(rows[i].printed * 100));
    }
    CHECK(std::round(times[2] / times[1] * 100) == 102);  // A4K8 against 8:64
    CHECK(std::round(times[4] / times[3] * 100) == 118);  // A3K16 against 8:128
}

TEST_CASE("law: designs rank by what they reach in the same time") {
    // A3K16 has the lower residual; A4K8 runs a third faster at about the same FLOPs a token.
    const timed_design a4k8{{936e6, 32768, 8, 4, 161.0 / 28}, 4.573e9, 52000};
    const timed_design a3k16{{936e6, 32768, 16, 3, 298.0 / 28}, 4.506e9, 39000};
    CHECK(residual(a3k16.at) < residual(a4k8.at));
    const double seconds = 1.2e5;
    CHECK(loss_after(seconds, a4k8, curve) ==
          Approx(dense_loss(curve, seconds * 52000 * 4.573e9) + residual(a4k8.at)).epsilon(1e-12));
    // Where the dense loss hardly falls, the residual decides; where it falls, the speed.
    const std::vector<dense_run> flat{{1e19, 2.9}, {4e19, 2.8}};
    CHECK(loss_after(seconds, a4k8, flat) > loss_after(seconds, a3k16, flat));
    CHECK(loss_after(seconds, a4k8, curve) < loss_after(seconds, a3k16, curve));
}

TEST_CASE("law: the report gives interval, distance and the missing reference") {
    CHECK(law_report({556e6, 32768, 8, 4, 161.0 / 28}) ==
          "residual -0.1857, between -0.2249 and -0.1465; 1.75 doublings from the fitted set; a loss needs that of a "
          "dense model of 5.56e+08 active parameters at 32768 tokens and the same training FLOPs");
    CHECK(law_report({914082816, 32768, 8, 0.125, 49.0 / 28})
              .find("3.00 doublings from the fitted set, outside the "
                    "fitted ranges") != std::string::npos);
}
