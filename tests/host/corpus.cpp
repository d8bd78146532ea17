// SPDX-License-Identifier: MIT
// Corpora of text and token files: order, documents, splits, refusals.
#include "sdepth/corpus.hpp"

#include "support/catch.hpp"
#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"

using namespace sdepth;

namespace {

std::string text_of(const corpus& c) {
    std::vector<std::int32_t> tokens(c.size());
    c.read(0, tokens);
    return {tokens.begin(), tokens.end()};
}

using starts = std::vector<std::uint64_t>;
starts starts_of(const corpus& c) { return {c.document_starts().begin(), c.document_starts().end()}; }

}  // namespace

TEST_CASE("a folder of text is its files in the order of their names", "[corpus]") {
    const temporary_folder folder;
    std::filesystem::create_directories(folder / "b");
    std::filesystem::create_directories(folder / ".git");
    write_bytes(folder / "c.txt", "three");
    write_bytes(folder / "a.txt", "one\n");
    write_bytes(folder / "b/x.txt", "\xff\x00");
    write_bytes(folder / "empty.txt", "");
    write_bytes(folder / ".hidden", "no");
    write_bytes(folder / ".git/config", "no");
    write_bytes(folder / "b/x.txt", std::string("\xff\0", 2));
    const corpus c = corpus::open(folder.path());
    CHECK(c.tokenizer() == "bytes");
    CHECK(c.vocabulary() == 256);
    CHECK(text_of(c) == std::string("one\n\xff\0three", 11));
    CHECK(starts_of(c) == starts{0, 4, 6});
    std::vector<std::int32_t> part(4);
    c.read(3, part);
    CHECK(part == std::vector<std::int32_t>{'\n', 255, 0, 't'});

    const corpus one = corpus::open(folder / "c.txt");
    CHECK(text_of(one) == "three");
    CHECK(starts_of(one) == starts{0});
}

TEST_CASE("documents of token files begin with the file and at the document token", "[corpus]") {
    const temporary_folder folder;
    const token_source about{.tokenizer = "t", .vocabulary = 300, .document_token = 299};
    write_token_file(folder / "a.bin", std::vector<std::uint32_t>{299, 1, 2, 299, 3}, about);
    write_token_file(folder / "b.bin", std::vector<std::uint32_t>{4, 299, 299}, about);
    const corpus c = corpus::open(folder.path());
    CHECK(c.tokenizer() == "t");
    CHECK(c.vocabulary() == 300);
    CHECK(starts_of(c) == starts{0, 3, 5, 6, 7});
    std::vector<std::int32_t> all(8);
    c.read(0, all);
    CHECK(all == std::vector<std::int32_t>{299, 1, 2, 299, 3, 4, 299, 299});
    CHECK(corpus::open(folder / "b.bin").size() == 3);

    write_token_file(folder / "c.bin", std::vector<std::uint32_t>{4}, {.tokenizer = "u", .vocabulary = 300});
    CHECK(contains(refusal([&] { corpus::open(folder.path()); }), "holds tokens of \"u\""));
    std::filesystem::remove(folder / "c.bin");
    std::filesystem::remove(folder / "c.bin.json");
    write_bytes(folder / "d.txt", "x");
    CHECK(contains(refusal([&] { corpus::open(folder.path()); }), "d.txt: lies among token files"));
}

TEST_CASE("what holds no text is refused", "[corpus]") {
    const temporary_folder folder;
    CHECK(contains(refusal([&] { corpus::open(folder / "absent"); }), "does not exist"));
    CHECK(contains(refusal([&] { corpus::open(folder.path()); }), "holds no text"));
    write_bytes(folder / "a.txt", "");
    CHECK(contains(refusal([&] { corpus::open(folder.path()); }), "holds no text"));
    CHECK(contains(refusal([&] { corpus::open(folder / "a.txt"); }), "holds no text"));
    std::filesystem::create_symlink("self", folder / "self");
    CHECK_THROWS_AS(corpus::open(folder / "self"), error);
    CHECK_THROWS_AS(corpus::open(folder.path()), error);
    std::filesystem::remove(folder / "self");
    std::filesystem::create_symlink("nowhere", folder / "dangling");
    CHECK(contains(refusal([&] { corpus::open(folder.path()); }), "dangling: is neither"));
    std::filesystem::remove(folder / "dangling");
    std::filesystem::create_directory(folder / "sub");
    std::filesystem::create_symlink("..", folder / "sub/up");
    CHECK_THROWS_AS(corpus::open(folder.path()), error);
}

TEST_CASE("a split by share falls on the nearest document boundary", "[corpus]") {
    const temporary_folder folder;
    write_bytes(folder / "a", std::string(50, 'a'));
    write_bytes(folder / "b", std::string(30, 'b'));
    write_bytes(folder / "c", std::string(20, 'c'));
    const corpus c = corpus::open(folder.path());
    const auto held = [&](double fraction) { return text_of(c.split(fraction).held_out); };
    CHECK(held(0.001) == std::string(20, 'c'));
    CHECK(held(0.3) == std::string(20, 'c'));
    CHECK(held(0.4) == std::string(30, 'b') + std::string(20, 'c'));
    CHECK(held(0.999) == std::string(30, 'b') + std::string(20, 'c'));
    const auto parts = c.split(0.4);
    CHECK(text_of(parts.training) == std::string(50, 'a'));
    CHECK(starts_of(parts.held_out) == starts{0, 30});
    CHECK(parts.held_out.vocabulary() == 256);
    for (const double bad : {0.0, 1.0, -0.1, std::nan("")}) CHECK_THROWS_AS(c.split(bad), error);
}

TEST_CASE("a single document is cut inside it", "[corpus]") {
    const temporary_folder folder;
    write_bytes(folder / "a", "0123456789");
    const corpus c = corpus::open(folder / "a");
    const auto parts = c.split(0.2);
    CHECK(text_of(parts.training) == "01234567");
    CHECK(text_of(parts.held_out) == "89");
    CHECK(starts_of(parts.held_out) == starts{0});
    CHECK_THROWS_AS(c.split(0.01), error);
}

TEST_CASE("a named file is held out, wherever it stands", "[corpus]") {
    const temporary_folder folder;
    write_bytes(folder / "a", "aaa");
    write_bytes(folder / "b", "bb");
    write_bytes(folder / "c", "c");
    corpus_split parts;
    {
        const corpus c = corpus::open(folder.path());
        parts = c.split("b");
        CHECK(contains(refusal([&] { c.split("d"); }), "the first file there is \"a\""));
    }
    CHECK(text_of(parts.training) == "aaac");  // the parts outlive the whole
    CHECK(starts_of(parts.training) == starts{0, 3});
    CHECK(text_of(parts.held_out) == "bb");
    CHECK_THROWS_AS(parts.held_out.split("b"), error);
}
