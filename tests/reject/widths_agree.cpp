// SPDX-License-Identifier: MIT
// A user's layer of another width than the model's.
// expect: sdepth: the width of this layer must be Dims::width: make them equal
// numbers: widths_agree 2 32 64
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
    static constexpr verdict check(const Dims&) { return {}; }
    static constexpr long long width(const Dims& d) { return d.width; }
#else
    static constexpr state_size state(const Dims&) { return {}; }
    static constexpr verdict check(const Dims&) { return {}; }
    static constexpr long long width(const Dims& d) { return d.width / 2; }
#endif
    template <class Sink>
    static constexpr void describe(Sink&, const Dims&) {}
};

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
