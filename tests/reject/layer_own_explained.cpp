// SPDX-License-Identifier: MIT
// A rule of a user's layer in the layer's own words.
// own text: the layer's
// expect: pool: the width must be a multiple of the pool
// numbers: explain 2 64 7
#include "formula.hpp"

struct Pool : layer_base {
    static constexpr std::string_view name = "pool";
    static constexpr bool has_mixer = true;
    static constexpr bool has_ffn = false;
    static constexpr bool causal = true;
    static constexpr tensor_rows tensors(const Dims&) { return tensor_rows{}; }
    static constexpr mixing_work mixing(const Dims&) { return {}; }
#ifdef TWIN
    static constexpr state_size state(const Dims&) { return {}; }
    static constexpr verdict check(const Dims& d) {
        return detail::require(d.width % 8 == 0, rule::layer_own, d.width, 8);
    }
    template <long long layer, long long a, long long b>
    static constexpr bool explain() {
        static_assert(a % b == 0, "pool: the width must be a multiple of the pool");
        return true;
    }
#else
    static constexpr state_size state(const Dims&) { return {}; }
    static constexpr verdict check(const Dims& d) {
        return detail::require(d.width % 7 == 0, rule::layer_own, d.width, 7);
    }
    template <long long layer, long long a, long long b>
    static constexpr bool explain() {
        static_assert(a % b == 0, "pool: the width must be a multiple of the pool");
        return true;
    }
#endif
    template <class Sink>
    static constexpr void describe(Sink&, const Dims&) {}
};

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
