// SPDX-License-Identifier: MIT
// Files that live in memory, so that a fuzz target can call readers that take paths some thousand times a second.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

/// One nameless file; `path()` opens it.
class memory_file {
  public:
    memory_file() : number_(::memfd_create("fuzz", 0)) {
        if (number_ < 0) std::abort();
    }
    void set(std::string_view bytes) const {
        if (::ftruncate(number_, 0) != 0 ||
            ::pwrite(number_, bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size()))
            std::abort();
    }
    std::filesystem::path path() const { return "/proc/self/fd/" + std::to_string(number_); }

  private:
    int number_;
};

/// A folder in memory where the system has one, removed at the end.
class memory_folder {
  public:
    memory_folder() {
        const bool shared = std::filesystem::exists("/dev/shm");
        path_ = (shared ? std::filesystem::path("/dev/shm") : std::filesystem::temp_directory_path()) /
                ("sdepth-fuzz-" + std::to_string(::getpid()));
        std::filesystem::create_directories(path_);
    }
    ~memory_folder() {
        std::error_code ignored;
        std::filesystem::remove_all(path_, ignored);
    }
    const std::filesystem::path& path() const { return path_; }

  private:
    std::filesystem::path path_;
};
