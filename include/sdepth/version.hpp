// SPDX-License-Identifier: MIT
// The library's version as a constant; the macros SDEPTH_VERSION and SDEPTH_VERSION_STRING, for `#if`, come with
// config.hpp. Rank 0.
#pragma once

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

/// A release. Before 1.0 another minor version may break users.
struct version_number {
    int major = 0;
    int minor = 0;
    int patch = 0;

    friend constexpr bool operator==(const version_number&, const version_number&) = default;
};

/// The version of these headers.
inline constexpr version_number library_version{SDEPTH_VERSION_MAJOR, SDEPTH_VERSION_MINOR, SDEPTH_VERSION_PATCH};

}  // namespace sdepth::inline v0
