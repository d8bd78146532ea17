// SPDX-License-Identifier: MIT
// The first values of a model's tensors, each a function of (seed, tensor name, element) alone. Rank 4.
#pragma once

#include <math.h>

#include <cstdint>
#include <string_view>

#include "sdepth/layer.hpp"
#include "sdepth/random.hpp"

namespace sdepth::inline v0 {

namespace detail {

// FNV-1a, 32 bit: the stream of random numbers that a tensor draws from.
constexpr std::uint32_t stream_of(std::string_view name) {
    std::uint32_t hash = 2166136261u;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return hash;
}

// log-uniform in [low, 100 low].
SDEPTH_HOST_DEVICE inline double random_step(double low, double uniform) { return low * ::pow(100.0, uniform); }

}  // namespace detail

/// Element `i` of a tensor `cols` wide (0 = a vector) that starts as `start`.
SDEPTH_HOST_DEVICE inline double initial_value(const initial& start, std::uint64_t seed, std::uint32_t stream,
                                               long long i, long long cols) {
    const auto element = static_cast<std::uint64_t>(i);
    const auto uniform = [&] { return random_uniform(seed, random_use::weights, stream, element); };
    switch (start.kind) {
        case init_kind::zeros:
            return 0;
        case init_kind::ones:
            return 1;
        case init_kind::constant:
            return start.value;
        case init_kind::normal:
            return start.value * random_normal(seed, random_use::weights, stream, element);
        case init_kind::uniform:
            return start.value * (2 * uniform() - 1);
        case init_kind::log_counting:
            return ::log(1.0 + static_cast<double>(cols == 0 ? i : i % cols));
        case init_kind::log_uniform:
            return ::log(1 + (start.value - 1) * uniform());
        case init_kind::step_bias: {
            const double step = detail::random_step(start.value, uniform());
            return step + ::log(-::expm1(-step));  // softplus of this is step
        }
        case init_kind::log_step:
            return ::log(detail::random_step(start.value, uniform()));
    }
    return 0;
}

}  // namespace sdepth::inline v0
