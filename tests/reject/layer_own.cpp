// SPDX-License-Identifier: MIT
// A rule of a user's layer, without a text of its own.
// expect: sdepth: a layer's own check failed: see its check\(\), or give it an explain\(\)
// numbers: layer_own 2
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
#else
    static constexpr state_size state(const Dims&) { return {}; }
    static constexpr verdict check(const Dims& d) {
        return detail::require(d.width % 7 == 0, rule::layer_own, d.width, 7);
    }
#endif
    template <class Sink>
    static constexpr void describe(Sink&, const Dims&) {}
};

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
