// SPDX-License-Identifier: MIT
// The models of bench/step: the four formulas of Table 4 of the X-MoD paper on its 556M backbone, and the largest on
// its 936M one.
#pragma once

#include "sdepth/sdepth.hpp"

namespace sdepth_bench {

using namespace sdepth;
using namespace sdepth::literals;

inline constexpr Dims size_556m{
    .width = 1024, .head_dim = 128, .heads = 16, .kv_heads = 8, .ffn = 3072, .vocab = 50257};
inline constexpr auto dense_formula = dense * 28_c;
inline constexpr auto mod_formula = dense + (mod<8> + dense) * 24_c;
inline constexpr auto a4k8_formula = dense * 4_c + (sparse<8> * 24_c + dense) + (sparse<8> * 32_c + dense) * 4_c;
inline constexpr auto a3k16_formula = dense * 4_c + (sparse<16> * 48_c + dense) * 6_c;

inline constexpr Run long_run{.seq = 32768};

using Dense556 = Model<dense_formula, size_556m>;
using MoD556 = Model<mod_formula, size_556m>;
using A4K8 = Model<a4k8_formula, size_556m>;
using A3K16 = Model<a3k16_formula, size_556m>;

inline constexpr Dims size_936m{
    .width = 1536, .head_dim = 128, .heads = 16, .kv_heads = 8, .ffn = 3840, .vocab = 50257};
using A3K16of936 = Model<a3k16_formula, size_936m>;

}  // namespace sdepth_bench
