// SPDX-License-Identifier: MIT
// Derivatives of a loss by central differences, with the error that they themselves admit to.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>

namespace sdepth_test {

/// A derivative by central differences of order 6 and of order 4 at one shift.
struct difference {
    double slope = 0, coarse = 0;
    double rounding = 0;  // of the slope, by four roundings of each loss
    bool held = true;     // no choice changed
};

/// The differences of a loss in one of its numbers, at several shifts. They are judged by each other, never by the
/// gradient that they are to check: an order may be off (a strongly curved loss), a shift may reach across a kink (elu
/// + 1), and a small shift drowns in rounding.
template <class F>
class differences {
  public:
    /// @param at  at(shift, held) is the loss there; it clears `held` where a choice changed
    explicit differences(F at) : at_(at) {}

    struct estimate {
        double slope = 0;
        double error = std::numeric_limits<double>::infinity();
    };
    /// The first of the shifts that is right within `tolerance` by its own account, or else the best.
    estimate best(double tolerance) {
        estimate found;
        for (const std::size_t i : {2U, 3U, 4U, 5U, 1U, 0U}) {
            const difference& here = at(i);
            if (!here.held || !at(i + 1).held) continue;
            const double error =
                std::max(std::abs(here.slope - here.coarse), std::abs(here.slope - at(i + 1).slope)) + here.rounding;
            if (error < found.error) found = {here.slope, error};
            if (error <= tolerance) break;
        }
        return found;
    }

  private:
    static constexpr std::array<double, 7> shifts{1e-2, 3e-3, 1e-3, 3e-4, 1e-4, 1e-5, 1e-6};

    const difference& at(std::size_t i) {
        if (known_[i]) return *known_[i];
        const double h = shifts[i];
        difference d;
        const auto pair = [&](double shift) {
            const double up = at_(shift, d.held), down = at_(-shift, d.held);
            d.rounding = 4 * std::numeric_limits<double>::epsilon() * std::max(1.0, std::abs(up)) / h;
            return up - down;
        };
        const double one = pair(h), two = pair(2 * h), three = pair(3 * h);
        d.slope = (45 * one - 9 * two + three) / (60 * h);
        d.coarse = (8 * one - two) / (12 * h);
        return known_[i].emplace(d);
    }

    F at_;
    std::array<std::optional<difference>, 7> known_;
};

}  // namespace sdepth_test
