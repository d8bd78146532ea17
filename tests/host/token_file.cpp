// SPDX-License-Identifier: MIT
// Token files and their sidecars: round trip in both widths, and every wrong, cut or foreign file refused.
#include "sdepth/token_file.hpp"

#include "support/catch.hpp"
#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"

using namespace sdepth;

namespace {

token_source gpt2() { return {.tokenizer = "gpt2", .vocabulary = 50257, .document_token = 50256}; }

std::string message_of(const std::filesystem::path& path, checksum policy = checksum::verify) {
    return refusal([&] { token_file file(path, policy); });
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
    const auto at = text.find(what);
    REQUIRE(at != std::string::npos);
    return text.replace(at, what.size(), by);
}

}  // namespace

TEST_CASE("token files come back as they were written", "[token_file]") {
    const temporary_folder folder;
    const std::vector<std::uint32_t> tokens{50256, 0, 1, 65535, 7};
    write_token_file(folder / "a.bin", tokens, {.tokenizer = "x \"y\"", .vocabulary = 65536});
    write_token_file(folder / "b.bin", tokens,
                     {.tokenizer = "llama-3", .vocabulary = 128256, .document_token = 128000});
    for (const char* name : {"a.bin", "b.bin"}) {
        const token_file in(folder / name);
        REQUIRE(in.size() == tokens.size());
        for (std::size_t i = 0; i < tokens.size(); ++i) CHECK(in[i] == tokens[i]);
    }
    const token_file a(folder / "a.bin"), b(folder / "b.bin");
    CHECK(a.description().source.tokenizer == "x \"y\"");
    CHECK(a.description().dtype == "uint16");
    CHECK_FALSE(a.description().source.document_token);
    CHECK(b.description().dtype == "uint32");
    CHECK(b.description().source.document_token == 128000u);
    CHECK(read_bytes(folder / "a.bin").size() == 1024 + 10);
    CHECK(read_bytes(folder / "b.bin").size() == 1024 + 20);
}

TEST_CASE("the bytes are llm.c's", "[token_file]") {
    const temporary_folder folder;
    write_token_file(folder / "a.bin", std::vector<std::uint32_t>{50256, 258}, gpt2());
    std::string want(1024, '\0');
    want.replace(0, 12, std::string("\x88\xd8\x34\x01\x01\0\0\0\x02\0\0\0", 12));
    want += std::string("\x50\xc4\x02\x01", 4);
    CHECK(read_bytes(folder / "a.bin") == want);
    CHECK(read_bytes(folder / "a.bin.json") ==
          "{\n  \"tokenizer\": \"gpt2\",\n  \"vocabulary\": 50257,\n  \"document_token\": 50256,\n  \"count\": 2,\n"
          "  \"dtype\": \"uint16\",\n  \"sha256\": \"" +
              token_file(folder / "a.bin").description().sha256 + "\"\n}\n");
}

TEST_CASE("a wrong token file is refused with one clear error", "[token_file]") {
    const temporary_folder folder;
    const auto path = folder / "a.bin";
    write_token_file(path, std::vector<std::uint32_t>{1, 2, 3}, gpt2());
    const std::string bytes = read_bytes(path), sidecar = read_bytes(folder / "a.bin.json");
    REQUIRE(message_of(path) == "accepted");
    const auto expect = [&](const std::string& file, const std::string& json, const std::string& words) {
        write_bytes(path, file);
        write_bytes(folder / "a.bin.json", json);
        const std::string message = message_of(path);
        INFO(message);
        CHECK(message.starts_with("sdepth: " + path.string()));
        CHECK(message.find(words) != std::string::npos);
    };
    for (std::size_t length = 0; length < bytes.size(); ++length) {
        write_bytes(path, bytes.substr(0, length));
        REQUIRE(message_of(path) != "accepted");
    }
    expect("", sidecar, "has 0 bytes");
    expect(std::string(2000, 'x'), sidecar, "is no token file: magic 2021161080");
    expect(bytes + "x", sidecar, "states 3 tokens of type uint16, its size is 1031 bytes");
    expect(bytes.substr(0, 1029), sidecar, "its size is 1029 bytes");
    std::string other = bytes;
    other[4] = 2;
    expect(other, sidecar, "version 2 instead of");
    other = bytes;
    other.replace(8, 4, "\xff\xff\xff\xff");
    expect(other, sidecar, "states -1 tokens");
    other = bytes;
    other.back() = 1;
    expect(other, sidecar, "SHA-256");
    CHECK(message_of(path, checksum::trust) == "accepted");
    expect(bytes, replaced(sidecar, "\"count\": 3", "\"count\": 4"), "its sidecar says 4");
    expect(bytes, replaced(sidecar, "uint16", "uint32"), "its sidecar says 3 of \"uint32\"");
    expect(bytes, replaced(sidecar, "50257", "4000000000"), "too large");
    expect(bytes, replaced(sidecar, "50257", "50256"), "holds the document token");
    expect(bytes, replaced(sidecar, "gpt2\",", "gpt2\", \"x\": 1,"), "unknown member \"x\"");
    expect(bytes, replaced(sidecar, "\"tokenizer\": \"gpt2\",", ""), "needs tokenizer, vocabulary");
    expect(bytes, sidecar.substr(0, 40), "JSON");
    expect(bytes, "", "JSON");
    expect(bytes, replaced(replaced(sidecar, "50257", "3"), "50256", "0"), "token 2 is 3, outside the vocabulary of 3");
    std::filesystem::remove(folder / "a.bin.json");
    CHECK(message_of(path).find("has no a.bin.json beside it") != std::string::npos);
    CHECK(message_of(folder / "absent.bin").find("cannot open it") != std::string::npos);
}

TEST_CASE("a foreign token file gets a sidecar", "[token_file]") {
    const temporary_folder folder;
    write_token_file(folder / "a.bin", std::vector<std::uint32_t>{50256, 5}, gpt2());
    const std::string want = read_bytes(folder / "a.bin.json");
    std::filesystem::remove(folder / "a.bin.json");
    describe_token_file(folder / "a.bin", gpt2());
    CHECK(read_bytes(folder / "a.bin.json") == want);
    write_bytes(folder / "b.bin", "hello");
    CHECK_THROWS_AS(describe_token_file(folder / "b.bin", gpt2()), error);
    CHECK_FALSE(std::filesystem::exists(folder / "b.bin.json"));
}

TEST_CASE("tokens that do not fit are not written", "[token_file]") {
    const temporary_folder folder;
    CHECK_THROWS_AS(write_token_file(folder / "a.bin", std::vector<std::uint32_t>{50257}, gpt2()), error);
    CHECK_THROWS_AS(write_token_file(folder / "a.bin", {}, gpt2()), error);
    CHECK_FALSE(std::filesystem::exists(folder / "a.bin"));
}

TEST_CASE("a token file replaces token files, whole or cut, and nothing else", "[token_file]") {
    const temporary_folder folder;
    const auto path = folder / "a.bin";
    for (const std::string& other : {std::string("a letter"), std::string(), std::string(3000, 'x')}) {
        write_bytes(path, other);
        CHECK(refusal([&] {
                  write_token_file(path, std::vector<std::uint32_t>{1, 2}, gpt2());
              }) ==
              "sdepth: " + path.string() + ": is no token file and is not replaced; move it or name another file");
        CHECK(read_bytes(path) == other);
    }
    std::filesystem::remove(path);
    write_token_file(path, std::vector<std::uint32_t>{1, 2, 3}, gpt2());
    write_bytes(path, read_bytes(path).substr(0, 1026));
    write_token_file(path, std::vector<std::uint32_t>{4}, gpt2());
    CHECK(token_file(path).size() == 1);
}

TEST_CASE("a sidecar is written only for the tokenizer that made the file", "[token_file]") {
    const temporary_folder folder;
    const token_source llama{.tokenizer = "llama-3", .vocabulary = 128256, .document_token = 128000};
    write_token_file(folder / "g.bin", std::vector<std::uint32_t>{50256, 5}, gpt2());
    write_token_file(folder / "l.bin", std::vector<std::uint32_t>{128000, 5}, llama);
    const auto refused = [&](const char* name, const token_source& about) {
        const std::string before = read_bytes(folder / (std::string(name) + ".json"));
        const std::string message = refusal([&] { describe_token_file(folder / name, about); });
        CHECK(read_bytes(folder / (std::string(name) + ".json")) == before);
        return message;
    };
    CHECK(contains(refused("g.bin", llama), "holds tokens of type uint16, those of \"llama-3\" are uint32"));
    CHECK(contains(refused("l.bin", gpt2()), "holds tokens of type uint32, those of \"gpt2\" are uint16"));
    CHECK(contains(refused("g.bin", {.tokenizer = "own", .vocabulary = 50300}), "says tokenizer \"gpt2\""));
    CHECK(contains(refused("g.bin", {.tokenizer = "own", .vocabulary = 50256}), "outside the vocabulary of 50256"));
    CHECK(refused("g.bin", gpt2()) == "accepted");

    // One that is wrong about its file is written anew.
    write_bytes(folder / "g.bin.json", read_bytes(folder / "l.bin.json"));
    describe_token_file(folder / "g.bin", gpt2());
    CHECK(token_file(folder / "g.bin").description().source == gpt2());
}
