// SPDX-License-Identifier: MIT
// The same inside `sparse`: the error names the inner type.
// expect: sdepth: not a layer: this type needs the member or public base named here: see layer.hpp
// expect: lacks_member<?.*Pool
// expect: layer_member::check
// numbers: lacks_member 4
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
#else
    static constexpr state_size state(const Dims&) { return {}; }
#endif
    template <class Sink>
    static constexpr void describe(Sink&, const Dims&) {}
};

constexpr auto formula = dense * 3_c + sparse<4>(Pool{}) * 2_c + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 6>());
