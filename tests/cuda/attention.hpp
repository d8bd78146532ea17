// SPDX-License-Identifier: MIT
// Attention problems for the GPU tests: random inputs and their way through a device. No CUDA, no Catch2 here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sdepth/ops/attention.hpp"

namespace sdepth_test {

/// Which keys rows see: by the plain rule, or by first and last of the named kind.
enum class sight { plain, documents, subset, ragged };

struct attention_case {
    std::string name;
    int batch, heads, kv_heads, dim, queries, keys;
    bool causal = true;
    int window = 0;
    sight kind = sight::plain;
    bool live = false;  // live row counts below capacity, dead rows full of NaN
    bool wide = false;  // rows further apart than their data
};

struct attention_inputs {
    sdepth::AttentionArgs<double> args;   // sizes; the pointers lead nowhere
    std::vector<double> q, k, v, grad_o;  // numbers that bf16 holds exactly
    std::vector<int> first, last, live_queries, live_keys;
    std::vector<double> joint_o, joint_lse;  // where the backward begins; empty: at the forward's own
};

/// Which kernels: for Hopper by the sizes, the forward's tile for long sequences whatever they are, or the portable
/// ones.
enum class kernels { hopper, long_tile, portable };

struct attention_outputs {
    std::vector<double> o, lse, grad_q, grad_k, grad_v;
};

attention_inputs draw_attention(const attention_case& c, std::uint64_t seed);

/// Outputs are full of NaN beforehand.
attention_outputs attention_on_device(const attention_inputs& in, kernels by);

/// How queries were prepared, [B, Tq] rows of H heads of h.
struct query_preparation {
    bool norm = true, rotary = true;
    std::vector<double> x, weight, rstd, grad_weight;  // grad_weight: what it is before
    std::vector<int> positions;                        // may be empty
};
/// Gradients through the preparation: by both backwards at once, and by one after the other.
struct prepared_outputs {
    std::vector<double> grad_x, grad_weight, grad_x_apart, grad_weight_apart;
};
prepared_outputs prepared_on_device(const attention_inputs& in, const query_preparation& prepared, bool portable);

}  // namespace sdepth_test
