// SPDX-License-Identifier: MIT
// Rows and fields that mixers with a state of fixed size share. Rank 2.
#pragma once

#include <string_view>

#include "sdepth/layer.hpp"

namespace sdepth::inline v0 {

namespace detail {

// The weights of a short causal convolution over each channel apart.
constexpr tensor_row depthwise(std::string_view name, long long channels, long long width) {
    return {.name = name, .use = role::conv, .rows = channels, .cols = width, .start = {init_kind::normal, 0.02}};
}
// A matrix that parametrises a recurrence element by element.
constexpr tensor_row transition(std::string_view name, long long channels, long long states, initial start) {
    return {.name = name, .use = role::recurrence, .rows = channels, .cols = states, .start = start};
}

template <class Sink>
constexpr void describe_reset(Sink& sink) {
    sink.function("state reset", "at document starts");
}

}  // namespace detail

}  // namespace sdepth::inline v0
