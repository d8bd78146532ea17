// SPDX-License-Identifier: MIT
// A layer of one's own that is accepted; a case replaces one of its members.
#pragma once

#include "formula.hpp"

template <class Base>
struct OwnLayerOn : Base {
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
using OwnLayer = OwnLayerOn<layer_base>;
