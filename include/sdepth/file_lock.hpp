// SPDX-License-Identifier: MIT
// A lock on a file that is replaced whole and so cannot be locked itself: two runs must not write one. Linux. Rank 0.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "sdepth/error.hpp"
#include "sdepth/file.hpp"

namespace sdepth::inline v0 {

/// Held as long as it lives, by a lock on `<path>.lock`, which it removes at its end. A process that is killed leaves
/// that file but not the lock. Throws sdepth::error if another object, here or elsewhere, holds it; where the file
/// system knows no locks, it locks nothing.
class file_lock {
  public:
    explicit file_lock(const std::filesystem::path& path) : path_(detail::followed(path).string() + ".lock") {
        for (;;) {
            handle_ = detail::file_handle(::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0666));
            if (handle_.number() < 0) detail::fail_file(path, "create its lock beside it", errno);
            if (::flock(handle_.number(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK)
                throw error(path.string() + ": another run is writing it; wait for its end or name another file");
            // Its holder may have removed the file between our two calls: then we hold a lock on nothing.
            struct stat mine {
            }, there{};
            if (::fstat(handle_.number(), &mine) != 0) detail::fail_file(path_, "read its state", errno);
            if (::stat(path_.c_str(), &there) == 0 && mine.st_ino == there.st_ino && mine.st_dev == there.st_dev)
                return;
        }
    }
    file_lock(file_lock&&) = delete;
    ~file_lock() { ::unlink(path_.c_str()); }

  private:
    std::filesystem::path path_;
    detail::file_handle handle_;
};

}  // namespace sdepth::inline v0
