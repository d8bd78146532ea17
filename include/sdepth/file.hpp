// SPDX-License-Identifier: MIT
// Files, the two ways the library uses them: `input_file` reads or maps, `output_file` replaces a file whole or not at
// all. Linux (POSIX). Knows no format. Rank 0.
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "sdepth/error.hpp"

namespace sdepth::inline v0 {

namespace detail {

[[noreturn]] inline void fail_file(const std::filesystem::path& path, std::string_view what, int code) {
    throw error(path.string() + ": cannot " + std::string(what) + ": " + std::strerror(code));
}

/// A file descriptor that closes itself.
class file_handle {
  public:
    explicit file_handle(int number = -1) : number_(number) {}
    file_handle(file_handle&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    file_handle& operator=(file_handle&& other) noexcept {
        std::swap(number_, other.number_);
        return *this;
    }
    ~file_handle() {
        if (number_ >= 0) ::close(number_);
    }
    int number() const { return number_; }

  private:
    int number_;
};

/// What `path` leads to through links, whether it exists or not.
inline std::filesystem::path followed(std::filesystem::path path) {
    std::error_code ignored;
    for (int links = 0; std::filesystem::is_symlink(path, ignored); ++links) {
        if (links == 40) throw error(path.string() + ": is a link that leads in a circle; name a file");
        const std::filesystem::path next = std::filesystem::read_symlink(path, ignored);
        path = next.is_absolute() ? next : path.parent_path() / next;
    }
    return path;
}

}  // namespace detail

/// Whether both name one file, or would once it is there.
inline bool same_file(const std::filesystem::path& a, const std::filesystem::path& b) {
    std::error_code ignored;
    if (std::filesystem::equivalent(a, b, ignored)) return true;
    const auto whole = [&](const auto& path) {
        return std::filesystem::weakly_canonical(std::filesystem::absolute(detail::followed(path)), ignored);
    };
    return whole(a) == whole(b);
}

/// A regular file opened for reading. Throws `sdepth::error` if it cannot be opened or is no regular file.
class input_file {
  public:
    explicit input_file(std::filesystem::path path) : path_(std::move(path)) {
        // O_NONBLOCK: a named pipe without a writer must be refused, not waited for.
        handle_ = detail::file_handle(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
        if (handle_.number() < 0) detail::fail_file(path_, "open it", errno);
        struct stat info {};
        if (::fstat(handle_.number(), &info) != 0) detail::fail_file(path_, "read its size", errno);
        if (!S_ISREG(info.st_mode)) throw error(path_.string() + ": is no regular file; name a file");
        size_ = static_cast<std::uint64_t>(info.st_size);
    }

    const std::filesystem::path& path() const { return path_; }

    /// Bytes, when it was opened.
    std::uint64_t size() const { return size_; }

    /// Reads exactly `bytes` bytes from `offset` on. Throws if the file ends earlier.
    void read(void* to, std::uint64_t bytes, std::uint64_t offset) const {
        auto* place = static_cast<char*>(to);
        while (bytes > 0) {
            const ssize_t got = ::pread(handle_.number(), place, bytes, static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) detail::fail_file(path_, "read it", errno);
            if (got == 0) throw error(path_.string() + ": became shorter while it was read; fetch or save it again");
            place += got;
            offset += static_cast<std::uint64_t>(got);
            bytes -= static_cast<std::uint64_t>(got);
        }
    }

    /// The whole file as a string.
    std::string text() const {
        std::string content(size_, '\0');
        read(content.data(), size_, 0);
        return content;
    }

  private:
    friend class file_map;
    std::filesystem::path path_;
    detail::file_handle handle_;
    std::uint64_t size_ = 0;
};

/// A file mapped into memory, read only. The file must not shrink while it is mapped.
class file_map {
  public:
    explicit file_map(const input_file& file) : size_(file.size()) {
        if (size_ == 0) return;
        void* start = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.handle_.number(), 0);
        if (start == MAP_FAILED) detail::fail_file(file.path(), "map it into memory", errno);
        start_ = static_cast<const unsigned char*>(start);
    }
    file_map(file_map&& other) noexcept : start_(std::exchange(other.start_, nullptr)), size_(other.size_) {}
    file_map& operator=(file_map&&) = delete;
    ~file_map() {
        if (start_) ::munmap(const_cast<unsigned char*>(start_), size_);
    }

    const unsigned char* data() const { return start_; }
    std::uint64_t size() const { return size_; }

  private:
    const unsigned char* start_ = nullptr;
    std::uint64_t size_ = 0;
};

/// A file that appears under its name complete or not at all. Bytes go to `<path>.tmp-<process>` in the same folder;
/// `commit` syncs that file, renames it over `path` and syncs the folder. Destroyed before that, it removes the new
/// file. Killed before that, it leaves the old file whole; the next `output_file` for the same path clears the remains.
/// Links are followed: what they lead to is replaced. What is there and no regular file is refused.
class output_file {
  public:
    explicit output_file(const std::filesystem::path& path)
        : path_(detail::followed(path)), new_path_(path_.string() + ".tmp-" + std::to_string(::getpid())) {
        std::error_code ignored;
        const auto there = std::filesystem::status(path_, ignored);
        if (std::filesystem::exists(there) && !std::filesystem::is_regular_file(there))
            throw error(path.string() + ": is there and no regular file; name a file");
        clear_remains();
        handle_ = detail::file_handle(::open(new_path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
        if (handle_.number() < 0) detail::fail_file(new_path_, "create it", errno);
        // Held until the process ends: says that the owner lives. A file system without locks only keeps its remains.
        ::flock(handle_.number(), LOCK_EX | LOCK_NB);
    }
    output_file(output_file&&) = delete;
    ~output_file() {
        if (!committed_) ::unlink(new_path_.c_str());
    }

    void write(const void* from, std::uint64_t bytes, std::uint64_t offset) {
        const auto* place = static_cast<const char*>(from);
        while (bytes > 0) {
            const ssize_t put = ::pwrite(handle_.number(), place, bytes, static_cast<off_t>(offset));
            if (put < 0 && errno == EINTR) continue;
            if (put < 0) detail::fail_file(new_path_, "write it", errno);
            place += put;
            offset += static_cast<std::uint64_t>(put);
            bytes -= static_cast<std::uint64_t>(put);
        }
    }

    /// Takes room for `bytes` bytes on the disk. Throws if there is none; where a file system cannot tell, nothing.
    void reserve(std::uint64_t bytes) {
        if (bytes == 0 || ::fallocate(handle_.number(), 0, 0, static_cast<off_t>(bytes)) == 0) return;
        if (errno == EOPNOTSUPP || errno == ENOSYS || errno == EINTR) return;
        detail::fail_file(path_, "take " + std::to_string(bytes) + " bytes for it", errno);
    }

    /// Puts the new file in the place of the old one. After an error the old file is still there.
    void commit() {
        if (::fsync(handle_.number()) != 0) detail::fail_file(new_path_, "write it to the disk", errno);
        if (::rename(new_path_.c_str(), path_.c_str()) != 0) detail::fail_file(path_, "replace it", errno);
        committed_ = true;
        const auto folder = folder_of(path_);
        const detail::file_handle entry(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (entry.number() < 0 || ::fsync(entry.number()) != 0)
            detail::fail_file(folder, "write its entries to the disk", errno);
    }

  private:
    static std::filesystem::path folder_of(const std::filesystem::path& path) {
        return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
    }

    /// Removes new files of killed processes: those that nobody holds a lock on.
    void clear_remains() const {
        const std::string prefix = path_.filename().string() + ".tmp-";
        std::error_code ignored;
        for (const auto& entry : std::filesystem::directory_iterator(folder_of(path_), ignored)) {
            const std::string name = entry.path().filename().string();
            if (!name.starts_with(prefix) || name.find_first_not_of("0123456789", prefix.size()) != std::string::npos)
                continue;
            const detail::file_handle left(
                ::open(entry.path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW));
            if (left.number() >= 0 && ::flock(left.number(), LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
        }
    }

    std::filesystem::path path_, new_path_;
    detail::file_handle handle_;
    bool committed_ = false;
};

}  // namespace sdepth::inline v0
