// SPDX-License-Identifier: MIT
// The text of the error that a call throws, for tests that look for words in it.
#pragma once

#include <string>

#include "sdepth/error.hpp"

/// What `call` throws as `sdepth::error`, or "accepted".
template <class Call>
std::string refusal(Call call) {
    try {
        call();
    } catch (const sdepth::error& problem) {
        return problem.what();
    }
    return "accepted";
}

inline bool contains(const std::string& text, const std::string& words) {
    return text.find(words) != std::string::npos;
}
