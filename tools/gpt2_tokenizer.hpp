// SPDX-License-Identifier: MIT
// Byte-pair encoding as GPT-2 does it: pieces of text by a regular expression (PCRE2), then merges by rank. The ranks
// come from a file in tiktoken's format. Part of the tools, not of the library.
#pragma once

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <memory>
#include <queue>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sdepth/error.hpp"
#include "sdepth/file.hpp"
#include "sdepth/json.hpp"

namespace sdepth_tools {

/// SHA-256 of GPT-2's rank file, the same as tiktoken's r50k_base.
inline constexpr std::string_view gpt2_ranks_sha256 =
    "306cd27f03c1a714eca7108e03d66b7dc042abe8c258b44c199a7ed9838dd930";
/// <|endoftext|>, which begins each document; no text encodes to it.
inline constexpr std::uint32_t gpt2_document_token = 50256;
inline constexpr std::uint32_t gpt2_vocabulary = 50257;

/// Encodes UTF-8 text to token numbers and back.
class gpt2_tokenizer {
  public:
    /// Reads a rank file: a line a token, its bytes in base 64, a blank, its number. Numbers must be 0, 1, 2, ... in
    /// some order and every single byte a token. Throws `sdepth::error` with the line otherwise.
    explicit gpt2_tokenizer(const std::filesystem::path& ranks)
        : gpt2_tokenizer(sdepth::input_file(ranks).text(), ranks.string()) {}

    /// The same from the file's content; `name` is for messages.
    gpt2_tokenizer(std::string_view content, const std::string& name) {
        read_ranks(content, name);
        compile_pattern();
    }

    /// Tokens.
    std::size_t size() const { return tokens_.size(); }

    /// The tokens of `text`, which must be UTF-8; names of special tokens in it are ordinary text. `name` is for
    /// messages.
    std::vector<std::uint32_t> encode(std::string_view text, const std::string& name) const {
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t length = sdepth::utf8_length(text.substr(at));
            if (length == 0)
                throw sdepth::error(name + ": is not UTF-8 at byte " + std::to_string(at) +
                                    "; convert it, with iconv say");
            at += length;
        }
        std::vector<std::uint32_t> out;
        const auto* subject = reinterpret_cast<PCRE2_SPTR>(text.data());
        for (std::size_t at = 0; at < text.size();) {
            // The text was checked once; a check at each match would make the time quadratic.
            const int found =
                pcre2_match(pattern_.get(), subject, text.size(), at, PCRE2_NO_UTF_CHECK, match_.get(), nullptr);
            if (found < 0) throw sdepth::error(name + ": cannot be split into words: " + message_of(found));
            const std::size_t* place = pcre2_get_ovector_pointer(match_.get());
            merge(text.substr(place[0], place[1] - place[0]), out);
            at = place[1];
        }
        return out;
    }

    /// The bytes of the tokens, one after the other; nothing for the document token.
    std::string decode(std::span<const std::uint32_t> tokens) const {
        std::string out;
        for (const std::uint32_t token : tokens)
            if (token < tokens_.size()) out += tokens_[token];
        return out;
    }

  private:
    struct bytes_hash : std::hash<std::string_view> {
        using is_transparent = void;
    };

    static std::string message_of(int code) {
        std::array<PCRE2_UCHAR, 256> text{};
        pcre2_get_error_message(code, text.data(), text.size());
        return reinterpret_cast<const char*>(text.data());
    }

    static bool decode_base64(std::string_view code, std::string& out) {
        constexpr std::string_view digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        out.clear();
        if (code.empty() || code.size() % 4 != 0) return false;
        for (std::size_t at = 0; at < code.size(); at += 4) {
            const bool last = at + 4 == code.size();
            const int fill = last && code[at + 3] == '=' ? (code[at + 2] == '=' ? 2 : 1) : 0;
            std::uint32_t bits = 0;
            for (std::size_t i = 0; i < 4; ++i) {
                const std::size_t digit = i < static_cast<std::size_t>(4 - fill) ? digits.find(code[at + i]) : 0;
                if (digit == std::string_view::npos) return false;
                bits = bits << 6 | static_cast<std::uint32_t>(digit);
            }
            for (int i = 0; i < 3 - fill; ++i) out += static_cast<char>(bits >> (16 - 8 * i) & 255);
        }
        return true;
    }

    void read_ranks(std::string_view content, const std::string& name) {
        std::size_t line_number = 0;
        const auto fail = [&](const std::string& what) {
            throw sdepth::error(name + ": line " + std::to_string(line_number) + ": " + what +
                                "; fetch it with scripts/fetch_gpt2_ranks.sh");
        };
        std::string bytes;
        while (!content.empty()) {
            ++line_number;
            const std::size_t end = std::min(content.find('\n'), content.size());
            const std::string_view line = content.substr(0, end);
            content.remove_prefix(std::min(end + 1, content.size()));
            const std::size_t blank = line.find(' ');
            std::uint32_t number = 0;
            const char* stop = line.data() + line.size();
            if (blank == std::string_view::npos || !decode_base64(line.substr(0, blank), bytes) ||
                std::from_chars(line.data() + blank + 1, stop, number) != std::from_chars_result{stop, std::errc{}})
                fail("needs base 64, a blank and a number, got " + sdepth::json_quote_short(line));
            if (!ranks_.emplace(bytes, number).second) fail("a token that was there before");
        }
        tokens_.resize(ranks_.size());
        for (const auto& [token, number] : ranks_) {
            if (number >= tokens_.size() || !tokens_[number].empty())
                fail("the numbers are not 0 to " + std::to_string(tokens_.size() - 1) + ": " + std::to_string(number));
            tokens_[number] = token;
        }
        for (int byte = 0; byte < 256; ++byte)
            if (!ranks_.contains(std::string(1, static_cast<char>(byte))))
                fail("ends, and byte " + std::to_string(byte) + " is no token");
    }

    void compile_pattern() {
        // White space is written out as Unicode's property White_Space, which tiktoken means by \s; PCRE2's own \s
        // differs.
        const std::string space =
            R"(\t-\r \x{85}\x{A0}\x{1680}\x{2000}-\x{200A}\x{2028}\x{2029}\x{202F}\x{205F}\x{3000})";
        const std::string pattern = R"('(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^)" + space + R"(\p{L}\p{N}]+|[)" +
                                    space + "]+(?![^" + space + "])|[" + space + "]+";
        int code = 0;
        std::size_t place = 0;
        pattern_.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                                     PCRE2_UTF | PCRE2_UCP, &code, &place, nullptr));
        if (!pattern_) throw sdepth::error("PCRE2 refuses the pattern of GPT-2: " + message_of(code));
        pcre2_jit_compile(pattern_.get(), PCRE2_JIT_COMPLETE);  // where it is not available, matching is only slower
        match_.reset(pcre2_match_data_create_from_pattern(pattern_.get(), nullptr));
    }

    /// Joins neighbours of `piece` by the lowest rank, leftmost first, until no join is a token. Time n log n.
    void merge(std::string_view piece, std::vector<std::uint32_t>& out) const {
        if (const auto whole = ranks_.find(piece); whole != ranks_.end()) {
            out.push_back(whole->second);
            return;
        }
        // Part i begins at byte i if end[i] > i, and ends at end[i]; previous[] finds the part before.
        std::vector<std::size_t> end(piece.size()), previous(piece.size());
        using candidate = std::tuple<std::uint32_t, std::size_t, std::size_t, std::size_t>;  // rank, begin, middle, end
        std::priority_queue<candidate, std::vector<candidate>, std::greater<>> queue;
        const auto consider = [&](std::size_t begin) {
            const std::size_t middle = end[begin];
            if (middle == piece.size()) return;
            const auto found = ranks_.find(piece.substr(begin, end[middle] - begin));
            if (found != ranks_.end()) queue.emplace(found->second, begin, middle, end[middle]);
        };
        for (std::size_t i = 0; i < piece.size(); ++i) {
            end[i] = i + 1;
            previous[i] = i - 1;
        }
        for (std::size_t i = 0; i < piece.size(); ++i) consider(i);
        while (!queue.empty()) {
            const auto [rank, begin, middle, stop] = queue.top();
            queue.pop();
            if (end[begin] != middle || end[middle] != stop) continue;  // one of the two was joined otherwise meanwhile
            end[begin] = stop;
            end[middle] = middle;
            if (stop < piece.size()) previous[stop] = begin;
            consider(begin);
            if (begin > 0) consider(previous[begin]);
        }
        for (std::size_t i = 0; i < piece.size(); i = end[i])
            out.push_back(ranks_.find(piece.substr(i, end[i] - i))->second);
    }

    template <auto free>
    struct freed_by {
        template <class T>
        void operator()(T* x) const {
            free(x);
        }
    };

    std::unordered_map<std::string, std::uint32_t, bytes_hash, std::equal_to<>> ranks_;
    std::vector<std::string> tokens_;  // by number
    std::unique_ptr<pcre2_code, freed_by<pcre2_code_free>> pattern_;
    std::unique_ptr<pcre2_match_data, freed_by<pcre2_match_data_free>> match_;  // scratch of one thread
};

}  // namespace sdepth_tools
