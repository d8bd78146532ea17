// SPDX-License-Identifier: MIT
// The first values of a model's tensors, each a function of (seed, tensor name, element) alone. Rank 5.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sdepth/random.hpp"
#include "sdepth/tensor_table.hpp"

namespace sdepth::inline v0 {

namespace detail {

// FNV-1a, 32 bit: the stream of random numbers that a tensor draws from.
constexpr std::uint32_t stream_of(std::string_view name) {
    std::uint32_t hash = 2166136261u;
    for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return hash;
}

// log-uniform in [low, 100 low].
inline double random_step(double low, double uniform) { return low * std::pow(100.0, uniform); }

}  // namespace detail

/// Element `i` of a tensor `cols` wide (0 = a vector) that starts as `start`.
inline double initial_value(const initial& start, std::uint64_t seed, std::uint32_t stream, long long i,
                            long long cols) {
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
            return std::log(1.0 + static_cast<double>(cols == 0 ? i : i % cols));
        case init_kind::log_uniform:
            return std::log(1 + (start.value - 1) * uniform());
        case init_kind::step_bias: {
            const double step = detail::random_step(start.value, uniform());
            return step + std::log(-std::expm1(-step));  // softplus of this is step
        }
        case init_kind::log_step:
            return std::log(detail::random_step(start.value, uniform()));
    }
    return 0;
}

/// Calls f(file_tensor, values) with the first values of every tensor, in double.
template <class M, class F>
void for_each_initial_tensor(std::uint64_t seed, F f) {
    std::vector<double> values;
    for_each_file_tensor<M>([&](const file_tensor& tensor) {
        values.resize(static_cast<std::size_t>(tensor.elements));
        const std::uint32_t stream = detail::stream_of(tensor.name);
        for (long long i = 0; i < tensor.elements; ++i) {
            values[static_cast<std::size_t>(i)] =
                initial_value(tensor.row->tensor.start, seed, stream, i, tensor.row->tensor.cols);
        }
        f(tensor, values);
    });
}

}  // namespace sdepth::inline v0
