// SPDX-License-Identifier: MIT
// Sparse layers of sixteen sparsities without common factors: 1/2 + 1/3 + ... + 1/53 has a denominator of 65 bits.
// expect: sdepth: so many unlike sparsities or expert shares have no common denominator: use multiples
// numbers: shares_fit 17
#include "formula.hpp"

#ifdef TWIN
constexpr auto formula = sparse<2> + sparse<3> + sparse<5> + sparse<7> + sparse<11> + sparse<13> + sparse<17> + dense;
using M = Model<formula, small>;
static_assert(params<M>.active != params<M>.total && active_layers<M>.den() == 510510);
#else
constexpr auto formula = sparse<2> + sparse<3> + sparse<5> + sparse<7> + sparse<11> + sparse<13> + sparse<17> +
                         sparse<19> + sparse<23> + sparse<29> + sparse<31> + sparse<37> + sparse<41> + sparse<43> +
                         sparse<47> + sparse<53> + dense;
using M = Model<formula, small>;
static_assert(params<M>.active != params<M>.total && active_layers<M>.den() == 7);
#endif
static_assert(M::layers == (M::kinds::size));
static_assert(flops<M, Run{.seq = 64}>.paper.sequence.value() > 1);
static_assert(state<M, Run{.seq = 64}>.kv_expected.value() > 1);
