// SPDX-License-Identifier: MIT
// The one exception type of the run-time half. Rank 0.
#pragma once

#include <stdexcept>
#include <string>

#include "sdepth/config.hpp"

namespace sdepth::inline v0 {

/// A run-time error of the library. The text starts with `sdepth:` and says what is wrong, where, and how to mend it.
class error : public std::runtime_error {
  public:
    /// The prefix is added where it lacks: what may be thrown in a constant has it in the line that compilers show.
    explicit error(const std::string& what)
        : std::runtime_error(what.starts_with("sdepth: ") ? what : "sdepth: " + what) {}
};

}  // namespace sdepth::inline v0
