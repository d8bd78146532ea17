// SPDX-License-Identifier: MIT
// A layer of one's own with every member, derived from the base of formulas.
// expect: sdepth: not a layer: add the member or base named here to the type; layer.hpp lists them
// expect: Pool
// expect: layer_member::layer_base
// numbers: lacks_member 2
#include "formula.hpp"

#ifdef TWIN
struct Pool : layer_base {
#else
struct Pool : pattern_base {
#endif
    static constexpr std::string_view name = "own";
    static constexpr bool has_mixer = true;
    static constexpr bool has_ffn = false;
    static constexpr bool causal = true;
    static constexpr tensor_rows tensors(const Dims& d) {
        tensor_rows rows;
        rows.add(matrix("weight", role::output, d.width, d.width));
        return rows;
    }
    static constexpr mixing_work mixing(const Dims&) { return {}; }
    static constexpr state_size state(const Dims&) { return {}; }
    static constexpr verdict check(const Dims&) { return {}; }
    template <class Sink>
    static constexpr void describe(Sink&, const Dims&) {}
};

constexpr auto formula = dense + Pool{} + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
