// SPDX-License-Identifier: MIT
// Files that are replaced whole: links, what is no regular file, room on the disk, locks.
#include "sdepth/file.hpp"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "sdepth/file_lock.hpp"
#include "support/catch.hpp"
#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"

using namespace sdepth;

namespace {

void put(const std::filesystem::path& path, std::string_view bytes) {
    output_file file(path);
    file.write(bytes.data(), bytes.size(), 0);
    file.commit();
}

}  // namespace

TEST_CASE("what a link leads to is replaced, and the link stays", "[file]") {
    const temporary_folder folder;
    std::filesystem::create_directory(folder / "far");
    write_bytes(folder / "far/real", "old");
    std::filesystem::create_symlink("far/real", folder / "near");
    std::filesystem::create_symlink("near", folder / "second");
    std::filesystem::create_symlink("far/new", folder / "dangling");
    put(folder / "second", "new");
    put(folder / "dangling", "made");
    CHECK(std::filesystem::is_symlink(folder / "second"));
    CHECK(std::filesystem::is_symlink(folder / "near"));
    CHECK(read_bytes(folder / "far/real") == "new");
    CHECK(read_bytes(folder / "far/new") == "made");
    std::filesystem::create_symlink("circle", folder / "circle");
    CHECK(contains(refusal([&] { put(folder / "circle", "x"); }), "leads in a circle"));
}

TEST_CASE("a pipe, a device or a folder is never replaced", "[file]") {
    const temporary_folder folder;
    REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
    std::filesystem::create_directory(folder / "folder");
    std::filesystem::create_symlink("/dev/null", folder / "null");
    for (const char* name : {"pipe", "folder", "null"}) {
        CHECK(contains(refusal([&] { put(folder / name, "x"); }), "no regular file"));
    }
    CHECK(std::filesystem::is_fifo(folder / "pipe"));
    CHECK(std::filesystem::is_character_file("/dev/null"));
}

TEST_CASE("names of one file are told from names of two", "[file]") {
    const temporary_folder folder;
    write_bytes(folder / "a", "1");
    write_bytes(folder / "b", "1");
    std::filesystem::create_hard_link(folder / "a", folder / "hard");
    std::filesystem::create_symlink("later", folder / "link");
    CHECK(same_file(folder / "a", folder / "hard"));
    CHECK(same_file(folder / "later", folder / "./link"));  // neither is there yet
    CHECK_FALSE(same_file(folder / "a", folder / "b"));
    CHECK_FALSE(same_file(folder / "a", folder / "later"));
}

TEST_CASE("room that the disk does not have is an error", "[file]") {
    const temporary_folder folder;
    output_file file(folder / "x");
    file.reserve(1000);
    CHECK(contains(refusal([&] { file.reserve(std::uint64_t{1} << 62); }), "bytes for it"));
}

TEST_CASE("a lock has one holder, ends with it, and survives a killed one", "[file]") {
    const temporary_folder folder;
    const auto path = folder / "run";
    {
        const file_lock mine(path);
        std::filesystem::create_symlink("run", folder / "link");
        CHECK(contains(refusal([&] { file_lock again(folder / "link"); }), "another run is writing it"));
    }
    CHECK_FALSE(std::filesystem::exists(folder / "run.lock"));
    const pid_t child = ::fork();
    if (child == 0) {
        const file_lock theirs(path);
        ::_exit(0);  // as a killed process: no destructor
    }
    REQUIRE(::waitpid(child, nullptr, 0) == child);
    CHECK(std::filesystem::exists(folder / "run.lock"));
    CHECK(refusal([&] { file_lock again(path); }) == "accepted");
    CHECK_FALSE(std::filesystem::exists(folder / "run.lock"));
}
