// SPDX-License-Identifier: MIT
// How the examples end: one line for every error, and an error for output that could not be written.
#pragma once

#include <cstdio>
#include <exception>
#include <new>

#include "sdepth/error.hpp"

namespace examples {

/// Prints what went wrong; returns the exit status for it.
inline int failed(const std::exception& problem) {
    const bool memory = dynamic_cast<const std::bad_alloc*>(&problem) != nullptr;
    std::fprintf(stderr, "%s\n",
                 memory ? "sdepth: there is not enough memory; give less text or a smaller batch" : problem.what());
    return 1;
}

/// Throws if something that was printed could not be written.
inline void check_output() {
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) throw sdepth::error("the output could not be written");
}

}  // namespace examples
