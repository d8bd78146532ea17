// SPDX-License-Identifier: MIT
// SHA-256: the examples of FIPS 180-4 and every way of cutting a message.
#include "sdepth/sha256.hpp"

#include "support/catch.hpp"

namespace {

std::string digest(std::string_view text) {
    sdepth::sha256 sum;
    sum.add(text);
    return sum.hex();
}

}  // namespace

TEST_CASE("SHA-256 of the published examples", "[sha256]") {
    CHECK(digest("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    CHECK(digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    CHECK(digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
    CHECK(digest(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("SHA-256 does not depend on how the message is cut", "[sha256]") {
    std::string text;
    for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 37);
    for (std::size_t length = 0; length <= text.size(); length += 7)
        for (std::size_t cut = 0; cut <= length; cut += 5) {
            sdepth::sha256 sum;
            sum.add(std::string_view(text).substr(0, cut));
            sum.add(std::string_view(text).substr(cut, length - cut));
            REQUIRE(sum.hex() == digest(std::string_view(text).substr(0, length)));
        }
}
