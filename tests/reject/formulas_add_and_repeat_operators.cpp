// SPDX-License-Identifier: MIT
// Every other operator, between a layer and itself, a constant or nothing: one error for each kind of operands.
// expect: sdepth: formulas know \+ and \* alone: write a \+ b, a \* 4_c or loop<2>\(a\)
// expect: formulas_add_and_repeat
#include "formula.hpp"

struct Own : Dense {};
constexpr Own own;

template <class L>
constexpr auto misspelt(L a) {
#ifdef TWIN
    return a + a;
#else
    L b = a;
    return (a % a) | (a ^ a) | (a & a) | (a << a) | (a >> a) | (a && a) | (a || a) | (a / a) | (b += a) | (b *= a) |
           (b -= a) | (b /= a) | (b %= a);
#endif
}
constexpr auto formula = misspelt(own) + dense;
using M = Model<formula, small>;
static_assert(counted_as_usual<M, 3>());
