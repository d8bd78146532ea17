// SPDX-License-Identifier: MIT
// The differences that gradients are held against know when they are wrong.
#include "support/differences.hpp"

#include <cmath>

#include "support/catch.hpp"

namespace {

template <class F>
auto slope_of(F f, double tolerance) {
    return sdepth_test::differences([&](double shift, bool&) { return f(shift); }).best(tolerance);
}

}  // namespace

TEST_CASE("differences of smooth functions are right within what they say") {
    for (const double steepness : {1.0, 30.0, 100.0}) {
        const auto d = slope_of([&](double x) { return std::exp(steepness * x) / steepness; }, 1e-9);
        CHECK(d.error <= 1e-9);
        CHECK(std::abs(d.slope - 1) <= d.error);
    }
}

TEST_CASE("differences across a kink of the second derivative are not believed") {
    // Orders 4 and 6 agree on a wrong slope where the kink lies at the shift itself: only another shift tells.
    for (const double shift : {1e-2, 3e-3, 1e-3, 3e-4, 1e-4})
        for (const double place : {0.5, 1.0, 1.5, 2.0, 2.5}) {
            const auto d =
                slope_of([&](double x) { return x + 1e-2 * std::pow(std::fmax(0, x - place * shift), 2); }, 1e-10);
            INFO("kink at " << place << " x " << shift);
            CHECK(std::abs(d.slope - 1) <= std::fmax(d.error, 1e-10));
            CHECK(d.error <= 1e-9);  // two of the shifts do not reach the kink
        }
}

TEST_CASE("shifts that change a choice are left out, and without two others there is no answer") {
    sdepth_test::differences some([](double shift, bool& held) {
        held = held && std::abs(shift) < 2e-3;
        return std::abs(shift) < 2e-3 ? 2 * shift : 100.0;
    });
    CHECK(std::abs(some.best(1e-9).slope - 2) <= 1e-9);
    sdepth_test::differences none([](double, bool& held) { return held = false, 0.0; });
    CHECK(std::isinf(none.best(1e-9).error));
}
