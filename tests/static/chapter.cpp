// SPDX-License-Identifier: MIT
// Numbers of the book chapter on experts and state spaces: stored and evaluated experts, decoding state.
#include "printed.hpp"

namespace {

using namespace sdepth;
using namespace sdepth::literals;
using namespace sdepth_test;

// ---- experts: E Pe + E d stored, k Pe + E d evaluated, Pe = 3 d df
// --------------------------------------

constexpr Dims wide{.width = 4096, .expert_ffn = 14336, .vocab = 1};
struct expert_counts {
    count stored;
    ratio evaluated;
};
template <long long E>
constexpr expert_counts experts_of_two = [] {
    expert_counts sum;
    for (const tensor_row& row : Experts<E, 2>::tensors(wide)) {
        sum.stored += row.elements();
        sum.evaluated += row.active * ratio(row.elements());
    }
    return sum;
}();
template <long long E>
constexpr long long stored = experts_of_two<E>.stored.value();
template <long long E>
constexpr ratio evaluated = experts_of_two<E>.evaluated;
template <long long E>
constexpr long long stored_over_evaluated = rounded(ratio(stored<E>) / evaluated<E>, 100);

static_assert(stored<16> - stored<8> - 8 * 4096 == 8 * 176'160'768LL);  // Pe
static_assert(counted<stored<8>, 1'409'318'912>() && evaluated<8> == ratio(352'354'304));
static_assert(counted<stored<16>, 2'818'637'824>() && evaluated<16> == ratio(352'387'072));
static_assert(counted<stored<32>, 5'637'275'648>() && evaluated<32> == ratio(352'452'608));
static_assert(counted<stored<64>, 11'274'551'296>() && evaluated<64> == ratio(352'583'680));
static_assert(stored_over_evaluated<8> == 400);     // 4.00
static_assert(stored_over_evaluated<16> == 800);    // 8.00
static_assert(stored_over_evaluated<32> == 1'599);  // 15.99
static_assert(stored_over_evaluated<64> == 3'198);  // 31.98

// ---- decoding state of 24 Mamba layers, 1536 channels, 16 states, convolution of 4, f32 -----------------------------

using M = Model<presets::mamba_24, presets::size_mamba_130m>;
static_assert(counted<state<M, Run{.seq = 1}>.recurrent_full, 2'949'120>());  // the chapter: n_state + d_conv
static_assert(counted<state<M, Run{.seq = 1}>.recurrent, 2'801'664>());       // d_conv - 1 inputs suffice
static_assert(2'949'120 == 24 * 1536 * (16 + 4) * 4 && 2'801'664 == 24 * 1536 * (16 + 3) * 4);
static_assert(state<M, Run{.seq = 1'000'000}>.recurrent == 2'801'664, "independent of the context");
static_assert(state<M, Run{.seq = 1'000'000}>.kv_capacity == 0);
static_assert(state<M, Run{.seq = 1}, state_precision{.recurrent = 2}>.recurrent_full == 2'949'120 / 2);

// ---- growth: pairs of attention quadruple when the length doubles, state updates double ----------------------

constexpr Dims both{.width = 64, .head_dim = 16, .heads = 4, .ffn = 128, .vocab = 256};
template <long long seq, class M>
constexpr ratio mixing = flops<M, Run{.seq = seq}>.paper_mixing.sequence;
using Attending = Model<dense, both>;
using Selective = Model<mamba, both>;
using Delta = Model<gated_delta, both>;
static_assert(mixing<2000, Attending> == mixing<1000, Attending> * ratio(4));
static_assert(mixing<64000, Attending> == mixing<1000, Attending> * ratio(64 * 64));
static_assert(mixing<2000, Selective> == mixing<1000, Selective> * ratio(2));
static_assert(mixing<64000, Delta> == mixing<1000, Delta> * ratio(64));

}  // namespace
