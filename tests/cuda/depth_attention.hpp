// SPDX-License-Identifier: MIT
// Depth-attention problems for the GPU tests. No CUDA, no Catch2 here.
#pragma once

#include <cstdint>
#include <vector>

#include "sdepth/ops/depth_attention.hpp"

namespace sdepth_test {

struct depth_inputs {
    sdepth::DepthAttentionArgs<double> args;  // sizes; the pointers lead nowhere
    // grad_q, o and lse as the sequence branch left them; o and lse of the backward are joint ones.
    std::vector<double> q, slot, o, lse, joint_o, joint_lse, grad_o, grad_q;
    std::vector<std::uint8_t> mask;
    std::vector<int> live;
    bool at_once = true;  // grad_slot from the backward, else from two readings by depth_slot_gradients
};

struct depth_outputs {
    std::vector<double> o, lse, grad_q, grad_slot;
};

depth_outputs depth_on_host(depth_inputs& in);  // also sets joint_o and joint_lse
depth_outputs depth_on_device(const depth_inputs& in);

}  // namespace sdepth_test
