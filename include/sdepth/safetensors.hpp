// SPDX-License-Identifier: MIT
// The safetensors file format: named arrays of numbers and a map of strings. Knows no model; what a checkpoint must
// hold is checkpoint.hpp's business. Format: 8 bytes little-endian header length, JSON header, data. Rank 7.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_map>
#include <utility>
#include <vector>

#include "sdepth/bfloat16.hpp"
#include "sdepth/error.hpp"
#include "sdepth/file.hpp"
#include "sdepth/json.hpp"

namespace sdepth::inline v0 {

/// One tensor of a file, row-major and dense. An empty shape is a single number; an extent may be 0.
struct safetensors_entry {
    std::string name;
    std::string dtype;  ///< in the format's words, such as "F32"; `safetensors_dtype<T>` gives them
    std::vector<std::uint64_t> shape;
    std::uint64_t begin = 0, end = 0;  ///< place in the file's data, bytes; the writer finds it
};

using safetensors_metadata = std::map<std::string, std::string>;

namespace detail {

static_assert(std::endian::native == std::endian::little, "sdepth: files are little-endian; this machine is not");

/// The reference implementation refuses longer headers, so we neither read nor write one.
inline constexpr std::uint64_t safetensors_header_limit = 100'000'000;

/// Bytes of one number, or 0 for a type that the library does not know.
constexpr std::uint64_t safetensors_bytes(std::string_view dtype) {
    using names = std::initializer_list<std::string_view>;
    for (const auto name : names{"F64", "I64", "U64"})
        if (dtype == name) return 8;
    for (const auto name : names{"F32", "I32", "U32"})
        if (dtype == name) return 4;
    for (const auto name : names{"F16", "BF16", "I16", "U16"})
        if (dtype == name) return 2;
    for (const auto name : names{"F8_E4M3", "F8_E5M2", "I8", "U8", "BOOL"})
        if (dtype == name) return 1;
    return 0;
}

template <class T>
constexpr std::string_view safetensors_dtype_of() {
    if constexpr (std::is_same_v<T, double>) return "F64";
    if constexpr (std::is_same_v<T, float>) return "F32";
    if constexpr (std::is_same_v<T, bfloat16>) return "BF16";
    if constexpr (std::is_same_v<T, std::int64_t>) return "I64";
    if constexpr (std::is_same_v<T, std::int32_t>) return "I32";
    if constexpr (std::is_same_v<T, std::int8_t>) return "I8";
    if constexpr (std::is_same_v<T, std::uint64_t>) return "U64";
    if constexpr (std::is_same_v<T, std::uint32_t>) return "U32";
    if constexpr (std::is_same_v<T, std::uint16_t>) return "U16";
    if constexpr (std::is_same_v<T, std::uint8_t>) return "U8";
}

/// "F32 [3, 4]"
inline std::string safetensors_type(std::string_view dtype, std::span<const std::uint64_t> shape) {
    std::string text = std::string(dtype) + " [";
    for (std::size_t i = 0; i < shape.size(); ++i) text.append(i ? ", " : "").append(std::to_string(shape[i]));
    return text + "]";
}

/// Product of the dtype's bytes and all extents; false if it does not fit 64 bits (also on the way to a 0).
inline bool safetensors_size(const safetensors_entry& entry, std::uint64_t& bytes) {
    bytes = safetensors_bytes(entry.dtype);
    for (const std::uint64_t extent : entry.shape)
        if (__builtin_mul_overflow(bytes, extent, &bytes)) return false;
    return true;
}

}  // namespace detail

/// The format's word for the C++ type T: float is "F32".
template <class T>
inline constexpr std::string_view safetensors_dtype = detail::safetensors_dtype_of<T>();

/// A safetensors file opened for reading, its header checked whole; tensors are read one by one into the caller's
/// memory. Throws `sdepth::error` for every defect: too short, not JSON, name twice, unknown type, sizes that overflow
/// or do not agree, data that overlap, leave a gap or do not reach to the end of the file. Tensors need not be aligned.
class safetensors_reader {
  public:
    explicit safetensors_reader(const std::filesystem::path& path) : file_(path) {
        std::uint64_t header_bytes = 0;
        if (file_.size() < 8) fail("has " + std::to_string(file_.size()) + " bytes, too few for a safetensors file");
        file_.read(&header_bytes, 8, 0);
        if (header_bytes > file_.size() - 8 || header_bytes > detail::safetensors_header_limit)
            fail("states a header of " + std::to_string(header_bytes) + " bytes in a file of " +
                 std::to_string(file_.size()));
        data_offset_ = 8 + header_bytes;
        std::string header(header_bytes, '\0');
        file_.read(header.data(), header_bytes, 8);
        if (header.empty() || header[0] != '{') fail("its header does not begin with '{'");
        parse(header);
        check();
    }

    const std::filesystem::path& path() const { return file_.path(); }
    const safetensors_metadata& metadata() const { return metadata_; }

    /// All tensors, in the order of their data.
    const std::vector<safetensors_entry>& entries() const { return entries_; }

    /// The tensor of that name, or null.
    const safetensors_entry* find(const std::string& name) const {
        const auto found = index_.find(name);
        return found == index_.end() ? nullptr : &entries_[found->second];
    }

    /// Reads tensor `name` into `to`. Throws unless the file has it with exactly this shape and T's type.
    template <class T>
    void read(const std::string& name, std::span<const std::uint64_t> shape, std::span<T> to) const {
        const safetensors_entry* entry = find(name);
        const std::string want = detail::safetensors_type(safetensors_dtype<T>, shape);
        if (!entry)
            fail("has no tensor " + json_quote_short(name) + ", wanted as " + want, "load the file of this model");
        const std::string got = detail::safetensors_type(entry->dtype, entry->shape);
        if (got != want)
            fail("tensor " + json_quote_short(name) + " is " + got + ", wanted as " + want,
                 "load the file of this model");
        if (to.size_bytes() != entry->end - entry->begin)
            throw error("tensor " + json_quote_short(name) + ", " + want + ", does not fit a buffer of " +
                        std::to_string(to.size()) + " numbers; pass one of the tensor's size");
        file_.read(to.data(), to.size_bytes(), data_offset_ + entry->begin);
    }

  private:
    [[noreturn]] void fail(const std::string& what, const std::string& mend = "fetch or save the file again") const {
        throw error(path().string() + ": " + what + "; " + mend);
    }

    void parse(const std::string& header) {
        json_reader in(header, path().string() + ": its header", "fetch or save the file again");
        in.object([&](const std::string& name) {
            if (name == "__metadata__") {
                in.object([&](const std::string& key) { metadata_[key] = in.string(); });
                return;
            }
            safetensors_entry entry{.name = name, .dtype = {}, .shape = {}};
            std::vector<std::uint64_t> place;
            int members = 0;
            in.object([&](const std::string& key) {
                ++members;
                if (key == "dtype")
                    entry.dtype = in.string();
                else if (key == "shape")
                    in.array([&] { entry.shape.push_back(in.unsigned_integer()); });
                else if (key == "data_offsets")
                    in.array([&] { place.push_back(in.unsigned_integer()); });
                else
                    in.fail("tensor " + json_quote_short(name) + " has an unknown member " + json_quote_short(key));
            });
            if (members != 3 || place.size() != 2)
                in.fail("tensor " + json_quote_short(name) + " needs dtype, shape and two data_offsets");
            entry.begin = place[0];
            entry.end = place[1];
            entries_.push_back(std::move(entry));
        });
        in.end();
    }

    void check() {
        std::sort(entries_.begin(), entries_.end(), [](const safetensors_entry& a, const safetensors_entry& b) {
            return std::pair(a.begin, a.end) < std::pair(b.begin, b.end);
        });
        std::uint64_t covered = 0;
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            const safetensors_entry& entry = entries_[i];
            const std::string name = "tensor " + json_quote_short(entry.name);
            if (detail::safetensors_bytes(entry.dtype) == 0)
                fail(name + " has the type " + json_quote_short(entry.dtype),
                     "save it as one of F64, F32, BF16, I64, U8");
            std::uint64_t bytes = 0;
            if (!detail::safetensors_size(entry, bytes)) fail(name + " has a shape whose product overflows 64 bits");
            if (entry.begin != covered)
                fail(name + " begins at byte " + std::to_string(entry.begin) +
                     " of the data, but the one before ends at " + std::to_string(covered));
            if (entry.end < entry.begin || entry.end - entry.begin != bytes)
                fail(name + " has the data_offsets " + std::to_string(entry.begin) + " and " +
                     std::to_string(entry.end) + ", but its shape and type need " + std::to_string(bytes) + " bytes");
            covered = entry.end;
            index_[entry.name] = i;
        }
        if (covered != file_.size() - data_offset_)
            fail("its tensors need " + std::to_string(covered) + " bytes of data, the file has " +
                 std::to_string(file_.size() - data_offset_));
    }

    input_file file_;
    std::uint64_t data_offset_ = 0;
    safetensors_metadata metadata_;
    std::vector<safetensors_entry> entries_;
    std::unordered_map<std::string, std::size_t> index_;
};

/// Writes a safetensors file, tensor by tensor. The file appears under its name only by `commit`, complete and synced;
/// before that, whatever happens, a file that was there stays as it is (see `output_file`).
class safetensors_writer {
  public:
    /// All tensors must be named here (their `begin` and `end` are not read), because the header comes first.
    safetensors_writer(const std::filesystem::path& path, std::vector<safetensors_entry> entries,
                       const safetensors_metadata& metadata = {})
        : path_(path), entries_(std::move(entries)), written_(entries_.size()), file_(path) {
        // Large types first keeps every tensor aligned to its type, as the reference implementation does.
        std::stable_sort(entries_.begin(), entries_.end(), [](const safetensors_entry& a, const safetensors_entry& b) {
            return detail::safetensors_bytes(a.dtype) > detail::safetensors_bytes(b.dtype);
        });
        std::string header = "{\"__metadata__\":{";
        const char* separator = "";
        for (const auto& [key, value] : metadata) {
            header += separator + quote(key) + ':';
            const std::string text = quote(value);
            metadata_[key] = {8 + header.size(), text.size()};
            header += text;
            separator = ",";
        }
        header += '}';
        std::uint64_t place = 0;
        for (std::size_t i = 0; i < entries_.size(); ++i) {
            safetensors_entry& entry = entries_[i];
            if (entry.name == "__metadata__" || !index_.emplace(entry.name, i).second)
                fail("tensor " + json_quote_short(entry.name) + " is named twice or has the name of the metadata");
            std::uint64_t bytes = 0;
            if (!detail::safetensors_size(entry, bytes) || detail::safetensors_bytes(entry.dtype) == 0 ||
                __builtin_add_overflow(place, bytes, &entry.end))
                fail("tensor " + json_quote_short(entry.name) +
                     " has an unknown type or is too large: " + detail::safetensors_type(entry.dtype, entry.shape));
            entry.begin = place;
            place = entry.end;
            header += ',' + quote(entry.name) + ":{\"dtype\":\"" + entry.dtype + "\",\"shape\":[";
            for (std::size_t d = 0; d < entry.shape.size(); ++d)
                header.append(d ? "," : "").append(std::to_string(entry.shape[d]));
            header += "],\"data_offsets\":[" + std::to_string(entry.begin) + ',' + std::to_string(entry.end) + "]}";
        }
        header += '}';
        header.resize((header.size() + 7) / 8 * 8, ' ');
        if (header.size() > detail::safetensors_header_limit)
            fail("the header needs " + std::to_string(header.size()) + " bytes, the format allows 100000000");
        const std::uint64_t header_bytes = header.size();
        data_offset_ = 8 + header_bytes;
        file_.write(&header_bytes, 8, 0);
        file_.write(header.data(), header_bytes, 8);
    }

    /// Writes a whole tensor; every tensor once, in any order.
    template <class T>
    void write(const std::string& name, std::span<const T> from) {
        const auto found = index_.find(name);
        if (found == index_.end()) fail("tensor " + json_quote_short(name) + " was not announced");
        const safetensors_entry& entry = entries_[found->second];
        if (entry.dtype != safetensors_dtype<T> || from.size_bytes() != entry.end - entry.begin)
            fail("tensor " + json_quote_short(name) + " was announced as " +
                 detail::safetensors_type(entry.dtype, entry.shape) + ", but " + std::to_string(from.size()) +
                 " numbers of type " + std::string(safetensors_dtype<T>) + " were given");
        if (written_[found->second]) fail("tensor " + json_quote_short(name) + " was written twice");
        file_.write(from.data(), from.size_bytes(), data_offset_ + entry.begin);
        written_[found->second] = true;
    }

    /// Replaces a text of the metadata by one that takes as many bytes: for what only the numbers tell, such as their
    /// checksum.
    void amend(const std::string& key, std::string_view text) {
        const auto found = metadata_.find(key);
        const std::string quoted = quote(text);
        if (found == metadata_.end() || found->second.bytes != quoted.size())
            fail("the metadata " + json_quote_short(key) + " were not announced with so many bytes");
        file_.write(quoted.data(), quoted.size(), found->second.begin);
    }

    /// Puts the file in its place. Throws if a tensor was not written.
    void commit() {
        for (std::size_t i = 0; i < entries_.size(); ++i)
            if (!written_[i]) fail("tensor " + json_quote_short(entries_[i].name) + " was not written");
        file_.commit();
    }

  private:
    [[noreturn]] void fail(const std::string& what) const {
        throw error(path_.string() + ": not saved: " + what + "; the list of tensors and the calls must agree");
    }
    std::string quote(std::string_view text) const {
        for (std::size_t at = 0; at < text.size();) {
            const std::size_t length = utf8_length(text.substr(at));
            if (length == 0) fail("the name or text " + json_quote_short(text) + " is not UTF-8");
            at += length;
        }
        return json_quote(text);
    }

    std::filesystem::path path_;
    std::vector<safetensors_entry> entries_;
    std::vector<bool> written_;
    output_file file_;
    std::unordered_map<std::string, std::size_t> index_;
    std::uint64_t data_offset_ = 0;
    struct text_place {
        std::uint64_t begin = 0, bytes = 0;
    };
    std::map<std::string, text_place> metadata_;  // of each text, quotes included
};

}  // namespace sdepth::inline v0
