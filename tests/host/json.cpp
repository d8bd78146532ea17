// SPDX-License-Identifier: MIT
// The JSON reader: what it takes, what it refuses and where; numbers and strings that survive a round trip.
#include "sdepth/json.hpp"

#include <limits>
#include <string>
#include <vector>

#include "support/catch.hpp"

using namespace sdepth;

namespace {

json_reader over(std::string_view text) { return {text, "test", "mend it"}; }

void read_any(std::string_view text) {
    auto in = over(text);
    in.skip();
    in.end();
}

std::string read_string(std::string_view text) {
    auto in = over(text);
    const std::string value = in.string();
    in.end();
    return value;
}

}  // namespace

TEST_CASE("valid JSON is read", "[json]") {
    for (const char* text : {"{}", " [ ] ", "null", "true", "false", "0", "-0.5e-3", "1E+2", R"("a\"b\\\/\b\f\n\r\t")",
                             R"({"a":[1,2,{"b":null}],"c":"d"})", "[[[[[]]]]]", "\t\r\n 1 \n"})
        CHECK_NOTHROW(read_any(text));
}

TEST_CASE("anything else is refused", "[json]") {
    for (const char* text : {"",
                             " ",
                             "{",
                             "}",
                             "[1,]",
                             "[,1]",
                             "[1 2]",
                             "{\"a\"}",
                             "{\"a\":}",
                             "{\"a\":1,}",
                             "{a:1}",
                             "{'a':1}",
                             "01",
                             "-",
                             "+1",
                             ".5",
                             "1.",
                             "1e",
                             "1e+",
                             "0x1",
                             "NaN",
                             "Infinity",
                             "nul",
                             "\"",
                             "\"a",
                             "\"\\x\"",
                             "\"\\u12\"",
                             "\"\\u12g4\"",
                             "\"\\ud800\"",
                             "\"\\udc00\"",
                             "\"\\ud800\\u0041\"",
                             "\"\n\"",
                             "\"\xff\"",
                             "\"\xc0\x80\"",
                             "\"\xed\xa0\x80\"",
                             "\"\xf4\x90\x80\x80\"",
                             "\"\xe2\x82\"",
                             "1 1",
                             "{} x",
                             R"({"a":1,"a":2})",
                             "//c\n1"})
        CHECK_THROWS_AS(read_any(text), error);
    CHECK_THROWS_AS(read_any(std::string(65, '[') + std::string(65, ']')), error);
    CHECK_NOTHROW(read_any(std::string(64, '[') + std::string(64, ']')));
    CHECK_THROWS_AS(read_any(std::string(1'000'000, '[')), error);
}

TEST_CASE("a message says where, what and how to mend", "[json]") {
    CHECK_THROWS_WITH(read_any("[1, 02]"), "sdepth: test: a number begins with a needless 0 (JSON, byte 6); mend it");
}

TEST_CASE("strings are decoded", "[json]") {
    CHECK(read_string(R"("\u0041\u00e9\u20ac\ud83d\ude00")") == "A\u00e9\u20ac\U0001F600");
    CHECK(read_string("\"\xF0\x9F\x98\x80\"") == "\U0001F600");
    std::string all;
    for (int c = 0; c < 128; ++c) all += static_cast<char>(c);
    CHECK(read_string(json_quote(all)) == all);
}

TEST_CASE("numbers survive", "[json]") {
    const auto read = [](const std::string& text) { return over(text).number(); };
    for (const double x : {0.0, 1.0, 0.1, -2.5e-300, std::numeric_limits<double>::max(),
                           std::numeric_limits<double>::denorm_min(), 3.141592653589793, 1e15, 123456789012345678.0})
        CHECK(read(json_number(x)) == x);
    CHECK(json_number(0.1) == "0.1");
    CHECK(json_number(std::numeric_limits<double>::quiet_NaN()) == "\"nan\"");
    CHECK(json_number(-std::numeric_limits<double>::infinity()) == "\"-inf\"");
    CHECK(over("18446744073709551615").unsigned_integer() == std::numeric_limits<std::uint64_t>::max());
    for (const char* text : {"18446744073709551616", "-1", "1.0", "1e3", "\"1\""})
        CHECK_THROWS_AS(over(text).unsigned_integer(), error);
    CHECK_THROWS_AS(over("1e999").number(), error);
}
