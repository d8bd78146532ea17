// SPDX-License-Identifier: MIT
// The small part of JSON (RFC 8259) that the library's own files need: a strict reader that is told what to expect, and
// the two pieces of a writer. No document tree, no streams. Rank 0.
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "sdepth/error.hpp"

namespace sdepth::inline v0 {

/// `text` as a JSON string with its quotes. Bytes from 0x80 on are passed through: UTF-8 stays UTF-8.
inline std::string json_quote(std::string_view text) {
    std::string out = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (c == '"' || c == '\\') {
            out += {'\\', c};
        } else if (byte < 0x20 || byte == 0x7f) {
            constexpr const char* hex = "0123456789abcdef";
            out += {'\\', 'u', '0', '0', hex[byte >> 4], hex[byte & 15]};
        } else {
            out += c;
        }
    }
    return out + '"';
}

/// The shortest decimal text that reads back as exactly `x`. JSON has no words for numbers that are not finite: these
/// become the strings "nan", "inf" and "-inf", which Python's float() takes.
inline std::string json_number(double x) {
    if (std::isnan(x)) return "\"nan\"";
    if (std::isinf(x)) return x > 0 ? "\"inf\"" : "\"-inf\"";
    std::array<char, 32> buffer{};
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), x).ptr;
    return {buffer.data(), end};
}

/// A name for an error message: quoted, one line, at most about 80 bytes long.
inline std::string json_quote_short(std::string_view text) {
    if (text.size() <= 80) return json_quote(text);
    std::size_t cut = 77;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0) == 0x80) --cut;
    return json_quote(std::string(text.substr(0, cut)) + "...");
}

/// The length of the UTF-8 character that `text` begins with (RFC 3629), or 0 if it begins with none.
inline std::size_t utf8_length(std::string_view text) {
    const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const auto tail = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
    const unsigned first = byte(0), second = byte(1);
    if (text.empty()) return 0;
    if (first < 0x80) return 1;
    if (first >= 0xC2 && first <= 0xDF) return tail(1) ? 2 : 0;
    if (first >= 0xE0 && first <= 0xEF) {
        const bool overlong = first == 0xE0 && second < 0xA0;
        const bool surrogate = first == 0xED && second >= 0xA0;
        return tail(1) && tail(2) && !overlong && !surrogate ? 3 : 0;
    }
    if (first >= 0xF0 && first <= 0xF4) {
        const bool overlong = first == 0xF0 && second < 0x90;
        const bool beyond = first == 0xF4 && second >= 0x90;
        return tail(1) && tail(2) && tail(3) && !overlong && !beyond ? 4 : 0;
    }
    return 0;
}

/// Reads one JSON text, front to back. The caller names what must come next; everything else is an `sdepth::error` that
/// says where. Stricter than RFC 8259 in two points: no member name twice in an object, nesting at most 64 deep.
///
///     json_reader in(text, "settings.json", "mend the file");
///     in.object([&](const std::string& key) { if (key == "steps") steps = in.unsigned_integer(); else in.skip(); });
///     in.end();
class json_reader {
  public:
    /// `where` begins every message, such as the path of the file; `advice` ends it. `text` must outlive the reader.
    json_reader(std::string_view text, std::string where, std::string advice)
        : text_(text), where_(std::move(where)), advice_(std::move(advice)) {}

    /// Calls `member(name)` for each member; it must read the value.
    template <class Member>
    void object(Member member) {
        enter('{');
        std::unordered_set<std::string> names;
        if (!accept('}')) {
            do {
                const auto [name, is_new] = names.insert(string());
                if (!is_new) fail("the name " + json_quote_short(*name) + " stands there twice");
                expect(':');
                member(*name);
            } while (accept(','));
            expect('}');
        }
        --depth_;
    }

    /// Calls `element()` for each element; it must read the value.
    template <class Element>
    void array(Element element) {
        enter('[');
        if (!accept(']')) {
            do {
                element();
            } while (accept(','));
            expect(']');
        }
        --depth_;
    }

    /// A string, as UTF-8.
    std::string string() {
        expect('"');
        std::string out;
        for (;;) {
            if (at_ == text_.size()) fail("a string does not end");
            const char c = text_[at_];
            if (c == '"') break;
            if (c == '\\') {
                ++at_;
                escape(out);
                continue;
            }
            const std::size_t length = utf8_length(text_.substr(at_));
            if (length == 0) fail("a string is not UTF-8");
            if (static_cast<unsigned char>(c) < 0x20) fail("a string holds a bare control character");
            out += text_.substr(at_, length);
            at_ += length;
        }
        ++at_;
        return out;
    }

    /// A whole number from 0 to 2^64 - 1, without sign, fraction or exponent.
    std::uint64_t unsigned_integer() {
        const std::string_view digits = number_text();
        std::uint64_t value = 0;
        const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
        if (problem != std::errc{} || end != digits.data() + digits.size())
            fail("needs a whole number from 0 to 18446744073709551615, got " + std::string(digits.substr(0, 40)));
        return value;
    }

    /// Any number.
    double number() {
        const std::string_view digits = number_text();
        double value = 0;
        if (std::from_chars(digits.data(), digits.data() + digits.size(), value).ec != std::errc{})
            fail("a number is out of range: " + std::string(digits.substr(0, 40)));
        return value;
    }

    /// Reads a value of any kind and forgets it.
    void skip() {
        switch (peek()) {
            case '{':
                return object([&](const std::string&) { skip(); });
            case '[':
                return array([&] { skip(); });
            case '"':
                string();
                return;
            case 't':
                return word("true");
            case 'f':
                return word("false");
            case 'n':
                return word("null");
            default:
                number_text();
        }
    }

    /// The next character that is no white space; 0 at the end.
    char peek() {
        while (at_ < text_.size() && std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos) ++at_;
        return at_ < text_.size() ? text_[at_] : '\0';
    }

    /// Checks that nothing but white space is left.
    void end() {
        peek();
        if (at_ != text_.size()) fail("something follows the end");
    }

    /// Throws an error about the value just read.
    [[noreturn]] void fail(const std::string& what) const {
        throw error(where_ + ": " + what + " (JSON, byte " + std::to_string(at_) + "); " + advice_);
    }

  private:
    bool accept(char c) {
        if (peek() != c) return false;
        ++at_;
        return true;
    }
    void expect(char c) {
        if (!accept(c)) fail(std::string("needs '") + c + '\'');
    }
    void enter(char c) {
        expect(c);
        if (++depth_ > 64) fail("is nested more than 64 deep");
    }
    void word(std::string_view expected) {
        if (text_.substr(at_, expected.size()) != expected) fail("needs a value");
        at_ += expected.size();
    }
    bool digits() {
        const std::size_t begin = at_;
        while (at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '9') ++at_;
        return at_ > begin;
    }
    std::string_view number_text() {
        peek();
        const std::size_t begin = at_;
        const auto next = [&](std::string_view set) {
            return at_ < text_.size() && set.find(text_[at_]) != std::string_view::npos;
        };
        if (next("-")) ++at_;
        const std::size_t whole = at_;
        if (!digits()) fail("needs a number");
        if (text_[whole] == '0' && at_ - whole > 1) fail("a number begins with a needless 0");
        if (next(".")) {
            ++at_;
            if (!digits()) fail("a number ends after its point");
        }
        if (next("eE")) {
            ++at_;
            if (next("+-")) ++at_;
            if (!digits()) fail("a number ends inside its exponent");
        }
        return text_.substr(begin, at_ - begin);
    }
    std::uint32_t four_hex() {
        std::uint32_t value = 0;
        const auto part = text_.substr(at_, 4);
        const auto [end, problem] = std::from_chars(part.data(), part.data() + part.size(), value, 16);
        if (part.size() != 4 || problem != std::errc{} || end != part.data() + 4)
            fail("needs four hex digits after \\u");
        at_ += 4;
        return value;
    }
    void escape(std::string& out) {
        const char c = at_ < text_.size() ? text_[at_++] : '\0';
        constexpr std::string_view names = "\"\\/bfnrt", values = "\"\\/\b\f\n\r\t";
        if (const std::size_t i = names.find(c); c != '\0' && i != std::string_view::npos) {
            out += values[i];
            return;
        }
        if (c != 'u') fail("an unknown escape in a string");
        std::uint32_t code = four_hex();
        if (code >= 0xD800 && code < 0xDC00 && text_.substr(at_, 2) == "\\u") {
            at_ += 2;
            const std::uint32_t low = four_hex();
            if (low < 0xDC00 || low > 0xDFFF) fail("half of a surrogate pair is missing");
            code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
        } else if (code >= 0xD800 && code <= 0xDFFF) {
            fail("half of a surrogate pair is missing");
        }
        const auto put = [&](std::uint32_t byte) { out += static_cast<char>(byte); };
        if (code < 0x80) {
            put(code);
        } else if (code < 0x800) {
            put(0xC0 | (code >> 6));
            put(0x80 | (code & 0x3F));
        } else if (code < 0x10000) {
            put(0xE0 | (code >> 12));
            put(0x80 | ((code >> 6) & 0x3F));
            put(0x80 | (code & 0x3F));
        } else {
            put(0xF0 | (code >> 18));
            put(0x80 | ((code >> 12) & 0x3F));
            put(0x80 | ((code >> 6) & 0x3F));
            put(0x80 | (code & 0x3F));
        }
    }

    std::string_view text_;
    std::string where_, advice_;
    std::size_t at_ = 0;
    int depth_ = 0;
};

}  // namespace sdepth::inline v0
