// SPDX-License-Identifier: MIT
// The log of a run as JSON Lines: one object a line, for tools/plot.py and any other reader. Knows no trainer. Rank 7.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>

#include "sdepth/error.hpp"
#include "sdepth/file.hpp"
#include "sdepth/json.hpp"

namespace sdepth::inline v0 {

/// One value of a log line: a number, a truth value, a string, or a list of numbers. Floating-point numbers are printed
/// so that they read back as the same double; what is not finite is printed as the string "nan", "inf" or "-inf".
class log_value {
  public:
    log_value(bool x) : text_(x ? "true" : "false") {}
    template <std::integral T>
    requires(!std::same_as<T, bool>) log_value(T x) : text_(std::to_string(x)) {}
    template <std::floating_point T>
    log_value(T x) : text_(json_number(static_cast<double>(x))) {}
    log_value(std::string_view x) : text_(json_quote(x)) {}
    log_value(const char* x) : log_value(std::string_view(x)) {}
    template <class T>
    requires std::is_arithmetic_v<T> log_value(std::span<const T> list) : text_("[") {
        for (const T x : list) text_.append(text_.size() > 1 ? "," : "").append(log_value(x).text_);
        text_ += ']';
    }
    const std::string& text() const { return text_; }

  private:
    std::string text_;
};

/// Appends lines to a log file; each line is handed to the system whole before `write` returns.
class json_log {
  public:
    /// Opens the log at `path` for a run that goes on with step `next_step`: lines of earlier steps stay, lines of this
    /// step and later ones (of a run that was stopped after its last checkpoint), and an unfinished last line, are
    /// removed. A new run begins with step 0: an empty log.
    json_log(std::filesystem::path path, std::uint64_t next_step) : path_(std::move(path)) {
        std::error_code ignored;
        if (std::filesystem::exists(path_, ignored)) {
            const std::string old = input_file(path_).text();
            const std::string kept = next_step == 0 ? std::string() : lines_before(old, next_step);
            if (kept.size() != old.size()) {
                output_file shorter(path_);
                shorter.write(kept.data(), kept.size(), 0);
                shorter.commit();
            }
        }
        out_.open(path_, std::ios::binary | std::ios::app);
        if (!out_) throw error(path_.string() + ": cannot open it for writing; name another log");
    }

    using member = std::pair<std::string_view, log_value>;

    /// Writes one line. Put "step" first; names must differ.
    void write(std::initializer_list<member> members) { write(std::span(members.begin(), members.size())); }
    void write(std::span<const member> members) {
        std::string line;
        for (const auto& [name, value] : members)
            line.append(line.empty() ? "{" : ", ").append(json_quote(name)).append(": ").append(value.text());
        out_ << line << "}\n" << std::flush;
        if (!out_) throw error(path_.string() + ": cannot write a line; is the disk full?");
    }

  private:
    std::string lines_before(const std::string& old, std::uint64_t next_step) const {
        std::string kept;
        std::size_t number = 1;
        for (std::size_t begin = 0, end = 0; (end = old.find('\n', begin)) != std::string::npos; begin = end + 1) {
            const std::string_view line(old.data() + begin, end - begin);
            json_reader in(line, path_.string() + ": line " + std::to_string(number++),
                           "move the log away and resume without it");
            std::optional<std::uint64_t> step;
            in.object([&](const std::string& name) {
                if (name == "step")
                    step = in.unsigned_integer();
                else
                    in.skip();
            });
            in.end();
            if (!step || *step < next_step) kept.append(line).append("\n");
        }
        return kept;
    }

    std::filesystem::path path_;
    std::ofstream out_;
};

}  // namespace sdepth::inline v0
