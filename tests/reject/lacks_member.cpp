// SPDX-License-Identifier: MIT
// A layer of one's own that lacks `state`; the error names type and member.
// expect: sdepth: not a layer: this type needs the member or public base named here: see layer.hpp
// expect: Pool
// expect: layer_member::state
// numbers: lacks_member 2
#include "formula.hpp"

struct Pool : layer_base {
    static constexpr std::string_view name = "pool";
    static constexpr bool has_mixer = true;
    static constexpr bool has_ffn = false;
    static constexpr bool causal = true;
    static constexpr tensor_rows tensors(const Dims&) { return tensor_rows{}; }
    static constexpr mixing_work mixing(const Dims&) { return {}; }
#ifdef TWIN
    static constexpr verdict check(const Dims&) { return {}; }
    static constexpr state_size state(const Dims&) { return {}; }
#else
    static constexpr verdict check(const Dims&) { return {}; }
#endif
    template <class Sink>
    static constexpr void describe(Sink&, const Dims&) {}
};

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
