// SPDX-License-Identifier: MIT
// First values of tensors. Rank 5.
#pragma once

#include "sdepth/kernels/host/update.hpp"
#include "sdepth/ops/initial.hpp"
#include "sdepth/precision.hpp"

namespace sdepth::inline v0::on_host {

/// See InitialArgs.
template <class T>
void initialise(workers& team, const InitialArgs<uniform_precision<T>>& a) {
    detail::for_parts(team, a.elements, [&](long long first, long long last) {
        for (long long i = first; i < last; ++i)
            a.master[i] = static_cast<T>(initial_value(a.start, a.seed, a.stream, i, a.cols));
    });
}

}  // namespace sdepth::inline v0::on_host
