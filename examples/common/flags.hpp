// SPDX-License-Identifier: MIT
// What command lines may say: numbers within a range, also no nan; one line and status 2 for what they may not.
#pragma once

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <string>

namespace examples {

/// A number of [least, most], or of ]least, most] if `above`.
inline CLI::Validator number(double least, double most = std::numeric_limits<double>::infinity(), bool above = false) {
    const auto text = [](double x) {
        char digits[32];
        std::snprintf(digits, sizeof digits, "%g", x);
        return std::string(digits);
    };
    std::string want = "a number " + std::string(above ? "above " : "of at least ") + text(least);
    if (std::isfinite(most)) want += " and at most " + text(most);
    const auto check = [=](std::string& input) {
        char* end = nullptr;
        const double x = std::strtod(input.c_str(), &end);
        const bool good = end == input.c_str() + input.size() && !input.empty() && std::isfinite(x) &&
                          (above ? x > least : x >= least) && x <= most;
        return good ? std::string() : "'" + input + "' is not " + want;
    };
    return CLI::Validator(check, "");
}
inline CLI::Validator number_above(double least) {
    return number(least, std::numeric_limits<double>::infinity(), true);
}

/// Ends the program as an error of CLI11 does.
[[noreturn]] inline void usage_error(const CLI::App& app, const std::string& what) {
    app.exit(CLI::ValidationError(what));
    std::exit(2);
}

/// Reads the command line; after help or an error the program ends here.
inline void parse(CLI::App& app, int argc, char** argv) {
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& e) {
        std::exit(app.exit(e) == 0 ? 0 : 2);
    }
}

}  // namespace examples
