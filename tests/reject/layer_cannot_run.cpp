// SPDX-License-Identifier: MIT
// A plan of a layer that counts but has no passes.
// expect: sdepth: this layer can be counted but not run: it has no passes
#include "formula.hpp"
#include "sdepth/kernels/host/host.hpp"
#include "sdepth/plan.hpp"

struct Mirror : layer_base {
    static constexpr std::string_view name = "mirror";
    static constexpr bool has_mixer = true;
    static constexpr bool has_ffn = true;
    static constexpr bool causal = true;
    static constexpr tensor_rows tensors(const Dims&) { return tensor_rows{}; }
    static constexpr mixing_work mixing(const Dims&) { return {}; }
    static constexpr state_size state(const Dims&) { return {}; }
    static constexpr verdict check(const Dims&) { return {}; }
    template <class Sink>
    static constexpr void describe(Sink&, const Dims&) {}
};

#ifdef TWIN
using M = Model<dense * 2_c, small>;
#else
using M = Model<dense + Mirror{}, small>;
#endif
static_assert(counted_as_usual<M, 2>());
static_assert(plan<M, host<float>, Run{.seq = 64}>::peak_bytes > 0);
