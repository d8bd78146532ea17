// SPDX-License-Identifier: MIT
// The tokenizer of the tools, with small made-up ranks: splitting, merge order, long pieces, wrong rank files. That
// real text gives GPT-2's tokens is shown by tests/interop/gpt2_tokens.py.
#include "gpt2_tokenizer.hpp"

#include <chrono>

#include "support/catch.hpp"
#include "support/refusal.hpp"

using sdepth_tools::gpt2_tokenizer;

namespace {

std::string base64(std::string_view bytes) {
    constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        std::uint32_t bits = 0;
        for (std::size_t i = 0; i < 3; ++i)
            bits = bits << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u);
        for (std::size_t i = 0; i < 4; ++i) out += at + i <= bytes.size() ? digits[bits >> (18 - 6 * i) & 63] : '=';
    }
    return out;
}

/// A rank file: all bytes, then `merges` in their order.
std::string ranks(const std::vector<std::string>& merges) {
    std::string out;
    int number = 0;
    for (int byte = 0; byte < 256; ++byte)
        out += base64(std::string(1, static_cast<char>(byte))) + ' ' + std::to_string(number++) + '\n';
    for (const auto& token : merges) out += base64(token) + ' ' + std::to_string(number++) + '\n';
    return out;
}

/// Text cut by its tokens, such as "ab|c".
std::string cut(const gpt2_tokenizer& t, std::string_view text) {
    std::string out;
    for (const std::uint32_t token : t.encode(text, "test"))
        out.append(out.empty() ? "" : "|").append(t.decode(std::array{token}));
    return out;
}

std::string message_of(const std::string& content) {
    return refusal([&] { gpt2_tokenizer t(content, "file"); });
}

}  // namespace

TEST_CASE("merges follow the ranks, leftmost first", "[tokenizer]") {
    const gpt2_tokenizer t(ranks({"bc", "ab", "abc", "aa", "aaaa"}), "test");
    CHECK(t.size() == 261);
    CHECK(cut(t, "abc") == "abc");
    CHECK(cut(t, "abcd") == "abc|d");
    CHECK(cut(t, "abd") == "ab|d");
    CHECK(cut(t, "aaa") == "aa|a");
    CHECK(cut(t, "aaaaa") == "aaaa|a");
    CHECK(t.encode("", "test").empty());
    CHECK(cut(gpt2_tokenizer(ranks({"bc", "ab"}), "test"), "abcd") == "a|bc|d");
    CHECK(cut(gpt2_tokenizer(ranks({"ab", "bc"}), "test"), "abcd") == "ab|c|d");
}

TEST_CASE("no merge crosses the pieces of GPT-2's pattern", "[tokenizer]") {
    const gpt2_tokenizer t(ranks({"a1", "s1", "1a", "!a", " a", "  ", "   ", "'l", "'ll", "\na"}), "test");
    CHECK(cut(t, "a1a") == "a|1|a");
    CHECK(cut(t, "a!a") == "a|!|a");
    CHECK(cut(t, "a a") == "a| a");
    CHECK(cut(t, "a   a") == "a|  | a");  // of several blanks the last goes with the word
    CHECK(cut(t, "a   ") == "a|   ");
    CHECK(cut(t, "we'll'x") == "w|e|'ll|'|x");
    CHECK(cut(t, "a\na") == "a|\n|a");
}

TEST_CASE("decoding is the inverse of encoding", "[tokenizer]") {
    const gpt2_tokenizer t(ranks({"th", "the", " t", "\xC3\xA9"}), "test");
    const std::string text("the \xC3\xA9t\xC3\xA9 \0\n\xF0\x9F\x98\x80", 16);
    CHECK(t.decode(t.encode(text, "test")) == text);
    CHECK(t.decode(std::array<std::uint32_t, 2>{50256, 'x'}) == "x");
}

TEST_CASE("a long piece takes n log n", "[tokenizer]") {
    const gpt2_tokenizer t(ranks({"aa", "aaaa", "aaaaaaaa"}), "test");
    const auto begin = std::chrono::steady_clock::now();
    CHECK(t.encode(std::string(200'000, 'a') + "b", "test").size() == 25'001);
    CHECK(std::chrono::steady_clock::now() - begin < std::chrono::seconds(60));  // a quadratic loop takes longer
}

TEST_CASE("text that is not UTF-8 is refused with its place", "[tokenizer]") {
    const gpt2_tokenizer t(ranks({}), "test");
    CHECK_THROWS_WITH(t.encode("ab\xC3", "x.txt"), "sdepth: x.txt: is not UTF-8 at byte 2; convert it, with iconv say");
}

TEST_CASE("a wrong rank file is refused with its line", "[tokenizer]") {
    const std::string good = ranks({"ab"});
    const auto expect = [](const std::string& content, const std::string& words) {
        const std::string message = message_of(content);
        INFO(message);
        CHECK(message.starts_with("sdepth: file: line "));
        CHECK(message.find(words) != std::string::npos);
    };
    REQUIRE(message_of(good) == "accepted");
    CHECK(message_of(good.substr(0, good.size() - 1)) == "accepted");  // the last line end may be missing
    expect("", "line 0: ends, and byte 0 is no token");
    expect("hello", "line 1: needs base 64");
    expect(good + "YWI=\n", "line 258: needs base 64");
    expect(good + "YWI= x\n", "line 258: needs base 64");
    expect(good + "YWI= 257 \n", "line 258: needs base 64");
    expect(good + "Y=I= 257\n", "line 258: needs base 64");
    expect(good + "YWI 257\n", "line 258: needs base 64");
    expect(good + " 257\n", "line 258: needs base 64");
    expect(good + "YWI= 257\n", "line 258: a token that was there before");
    expect(good + "YWJj 258\n", "the numbers are not 0 to 257: 258");
    expect(good + "YWJj 3\n", "the numbers are not 0 to 257: 3");
    expect(good.substr(good.find('\n') + 1), "the numbers are not 0 to 255: 256");
}
