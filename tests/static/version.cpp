// SPDX-License-Identifier: MIT
// The forms of the version agree.
#include "sdepth/version.hpp"

#include <string_view>

constexpr int number(std::string_view text) {
    int value = 0;
    int part = 0;
    for (const char c : text) {
        if (c == '.') {
            value = value * 100 + part;
            part = 0;
        } else {
            part = part * 10 + (c - '0');
        }
    }
    return value * 100 + part;
}
static_assert(number(SDEPTH_VERSION_STRING) == SDEPTH_VERSION);
static_assert(sdepth::library_version ==
              sdepth::version_number{SDEPTH_VERSION / 10000, SDEPTH_VERSION / 100 % 100, SDEPTH_VERSION % 100});
static_assert(number("0.1.0") == 100 && number("1.2.3") == 10203);
