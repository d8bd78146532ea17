// SPDX-License-Identifier: MIT
// Architectures that kernels are written for. Rank 5.
#pragma once

#include "sdepth/config.hpp"

namespace sdepth::inline v0::on_cuda {

struct hopper {};    ///< sm_90a: fast
struct portable {};  ///< any from sm_80 on

}  // namespace sdepth::inline v0::on_cuda
