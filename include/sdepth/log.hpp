// SPDX-License-Identifier: MIT
// The log of a run as JSON Lines: one object a line, for tools/plot.py and any other reader. Knows no trainer. Rank 7.
#pragma once

#include <concepts>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <initializer_list>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

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
    /// removed. A new run begins with step 0: an empty log. A file that is no log of steps is refused and left alone.
    json_log(std::filesystem::path path, std::uint64_t next_step) : path_(std::move(path)) {
        std::error_code ignored;
        if (std::filesystem::exists(path_, ignored)) {
            const std::string old = input_file(path_).text();
            const std::string kept = lines_before(old, next_step);
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

    /// Whether a line of the step before `next_step` was kept that has the member `name`.
    bool last_step_has(const std::string& name) const { return last_.contains(name); }

  private:
    // What stays of an old log: lines of steps before `next_step` and, from step 1 on, those that name no step.
    std::string lines_before(const std::string& old, std::uint64_t next_step) {
        const std::string mend = "move it away or name another log";
        std::string kept;
        std::size_t number = 1, begin = 0;
        bool steps = false;
        for (std::size_t end = 0; (end = old.find('\n', begin)) != std::string::npos; begin = end + 1) {
            const std::string_view line(old.data() + begin, end - begin);
            json_reader in(line, path_.string() + ": is no log of a run: line " + std::to_string(number++), mend);
            std::optional<std::uint64_t> step;
            std::vector<std::string> names;
            in.object([&](const std::string& name) {
                names.push_back(name);
                if (name == "step")
                    step = in.unsigned_integer();
                else
                    in.skip();
            });
            in.end();
            steps = steps || step;
            if (step ? *step >= next_step : next_step == 0) continue;
            kept.append(line).append("\n");
            if (step && *step + 1 == next_step) last_.insert(names.begin(), names.end());
        }
        // A line that was cut off may stand at the end, and alone if the run was killed in its first.
        const std::string_view cut = std::string_view(old).substr(begin), first = "{\"step\": ";
        const bool begins = !cut.empty() && cut.substr(0, first.size()) == first.substr(0, cut.size());
        if (steps ? !cut.empty() && cut[0] != '{' : !old.empty() && !begins)
            throw error(path_.string() + ": is no log of a run: no line has a step; " + mend);
        return kept;
    }

    std::filesystem::path path_;
    std::set<std::string> last_;  // members of the kept lines of the last step
    std::ofstream out_;
};

}  // namespace sdepth::inline v0
