// SPDX-License-Identifier: MIT
// The balanced assignment of rows to experts with the largest sum of scores (BASE). Rank 5.
#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <vector>

#include "sdepth/config.hpp"

namespace sdepth::inline v0::on_host {

/// `each` different experts for every row so that no expert has more than `most` rows and the sum of scores is the
/// largest there is: out[row * each + j], rising. Rows come one after another, each over the best chain of moves
/// (successive longest paths over experts). Needs experts * most >= rows * each and each <= experts.
/// @param score  score(row, expert), finite
template <class Score>
std::vector<int> balanced_assignment(int rows, int experts, int each, long long most, const Score& score) {
    constexpr double never = -std::numeric_limits<double>::infinity();
    const auto count = static_cast<std::size_t>(experts);
    std::vector<std::vector<int>> members(count);
    std::vector<char> holds(static_cast<std::size_t>(rows) * count, 0);
    const auto held = [&](int row, int e) -> char& {
        return holds[static_cast<std::size_t>(row) * count + static_cast<std::size_t>(e)];
    };
    struct move {
        double gain;
        int row;
    };
    std::vector<move> best(count * count, move{never, -1});  // of a row from one expert to another
    const auto moved = [&](int from, int to) -> move& {
        return best[static_cast<std::size_t>(from) * count + static_cast<std::size_t>(to)];
    };
    const auto refresh = [&](int from, int to) {
        move& m = moved(from, to) = {never, -1};
        if (from == to) return;
        for (const int row : members[static_cast<std::size_t>(from)]) {
            const double gain = score(row, to) - score(row, from);
            if (held(row, to) == 0 && gain > m.gain) m = {gain, row};
        }
    };

    for (int unit = 0; unit < each; ++unit)
        for (int row = 0; row < rows; ++row) {
            std::vector<double> gain(count, never);
            std::vector<int> from(count, -1);
            for (int e = 0; e < experts; ++e)
                if (held(row, e) == 0) gain[static_cast<std::size_t>(e)] = score(row, e);
            bool better = true;
            for (int round = 1; better && round < experts; ++round) {
                better = false;
                for (int a = 0; a < experts; ++a)
                    for (int b = 0; b < experts; ++b) {
                        const move& m = moved(a, b);
                        if (m.row < 0 || m.row == row) continue;
                        const double through = gain[static_cast<std::size_t>(a)] + m.gain;
                        // Beyond rounding only: a chain must not run in a circle of equals.
                        if (through <= gain[static_cast<std::size_t>(b)] + 1e-12) continue;
                        gain[static_cast<std::size_t>(b)] = through;
                        from[static_cast<std::size_t>(b)] = a;
                        better = true;
                    }
            }
            int end = -1;
            for (int e = 0; e < experts; ++e) {
                const bool room = static_cast<long long>(members[static_cast<std::size_t>(e)].size()) < most;
                if (!room || gain[static_cast<std::size_t>(e)] == never) continue;
                if (end < 0 || gain[static_cast<std::size_t>(e)] > gain[static_cast<std::size_t>(end)]) end = e;
            }
            // Carry out the moves from the free end back to where the row enters.
            std::vector<char> changed(count, 0);
            std::vector<int> taken;
            for (int to = end;;) {
                changed[static_cast<std::size_t>(to)] = 1;
                const int a = from[static_cast<std::size_t>(to)];
                const int who = a < 0 ? row : moved(a, to).row;
                members[static_cast<std::size_t>(to)].push_back(who);
                held(who, to) = 1;
                taken.push_back(who);
                if (a < 0) break;
                auto& left = members[static_cast<std::size_t>(a)];
                left.erase(std::find(left.begin(), left.end(), who));
                held(who, a) = 0;
                to = a;
            }
            for (int a = 0; a < experts; ++a)
                for (int b = 0; b < experts; ++b) {
                    const bool other =
                        std::any_of(taken.begin(), taken.end(), [&](int who) { return held(who, a) != 0; });
                    if (changed[static_cast<std::size_t>(a)] != 0 || other) refresh(a, b);
                }
        }

    std::vector<int> out;
    out.reserve(static_cast<std::size_t>(rows) * static_cast<std::size_t>(each));
    for (int row = 0; row < rows; ++row)
        for (int e = 0; e < experts; ++e)
            if (held(row, e) != 0) out.push_back(e);
    return out;
}

}  // namespace sdepth::inline v0::on_host
