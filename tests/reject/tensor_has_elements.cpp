// SPDX-License-Identifier: MIT
// A layer of one's own whose second tensor has no rows: its check() should have asked for the size.
// expect: sdepth: a tensor row needs rows and copies from 1
// expect: Pool
// numbers: tensor_has_elements 2 2 -64
#include "formula.hpp"

struct Pool : layer_base {
    static constexpr std::string_view name = "pool";
    static constexpr bool has_mixer = true;
    static constexpr bool has_ffn = true;
    static constexpr bool causal = true;
    static constexpr tensor_rows tensors(const Dims& d) {
        tensor_rows rows;
        rows.add(matrix("in", role::input, d.width, d.width));
#ifdef TWIN
        rows.add(matrix("out", role::output, d.width, d.width));
#else
        rows.add(matrix("out", role::output, -d.width, d.width));
#endif
        return rows;
    }
    static constexpr mixing_work mixing(const Dims&) { return {}; }
    static constexpr state_size state(const Dims&) { return {}; }
    static constexpr verdict check(const Dims&) { return {}; }
    template <class Sink>
    static constexpr void describe(Sink&, const Dims&) {}
};

constexpr auto formula = dense + Pool{};
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 2>());
