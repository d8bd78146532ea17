// SPDX-License-Identifier: MIT
// Token files in the public layout of llm.c, with a JSON sidecar that says what the tokens are. Knows no batches.
// Layout: 256 int32 (magic, version, count, zeros), then the tokens. docs/data.md states both files whole. Rank 7.
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include "sdepth/error.hpp"
#include "sdepth/file.hpp"
#include "sdepth/json.hpp"
#include "sdepth/sha256.hpp"

namespace sdepth::inline v0 {

/// Where tokens come from.
struct token_source {
    std::string tokenizer{};                        ///< such as "gpt2"
    std::uint32_t vocabulary = 0;                   ///< every token is below it
    std::optional<std::uint32_t> document_token{};  ///< the token that begins each document, if one does

    friend bool operator==(const token_source&, const token_source&) = default;
};

/// What a token file holds; the content of `<name>.bin.json`.
struct token_description {
    token_source source{};
    std::uint64_t count = 0;  ///< tokens
    std::string dtype{};      ///< "uint16" or "uint32"
    std::string sha256{};     ///< of the whole token file
};

/// Whether opening reads the whole file for its checksum (about 4 s a gigabyte) or trusts it.
enum class checksum { verify, trust };

namespace detail {

struct token_layout {
    std::int32_t magic, version;
    std::string_view dtype;
    unsigned bytes;
};
/// dev/data/data_common.py of llm.c writes these two: "gpt-2" and "llama-3".
inline constexpr std::array<token_layout, 2> token_layouts{{{20240520, 1, "uint16", 2}, {20240801, 7, "uint32", 4}}};
inline constexpr std::uint64_t token_header_bytes = 1024;

inline std::filesystem::path sidecar_path(const std::filesystem::path& path) { return path.string() + ".json"; }

inline token_description read_sidecar(const std::filesystem::path& path) {
    const std::filesystem::path place = sidecar_path(path);
    std::error_code ignored;
    if (!std::filesystem::exists(place, ignored))
        throw error(path.string() + ": has no " + place.filename().string() +
                    " beside it, which says what its tokens are; make one: tokenize --describe gpt2 " + path.string());
    const input_file file(place);
    if (file.size() > 100'000) throw error(place.string() + ": is too long for a sidecar; make it again");
    const std::string text = file.text();
    json_reader in(text, place.string(), "make the token file again");
    token_description out;
    const auto small = [&] {
        const std::uint64_t value = in.unsigned_integer();
        if (value > std::numeric_limits<std::int32_t>::max()) in.fail(std::to_string(value) + " is too large");
        return static_cast<std::uint32_t>(value);
    };
    int needed = 0;
    in.object([&](const std::string& key) {
        ++needed;
        if (key == "tokenizer") {
            out.source.tokenizer = in.string();
        } else if (key == "vocabulary") {
            out.source.vocabulary = small();
        } else if (key == "count") {
            out.count = in.unsigned_integer();
        } else if (key == "dtype") {
            out.dtype = in.string();
        } else if (key == "sha256") {
            out.sha256 = in.string();
        } else if (key == "document_token") {
            out.source.document_token = small();
            --needed;
        } else {
            in.fail("unknown member " + json_quote_short(key));
        }
    });
    in.end();
    if (needed != 5) in.fail("needs tokenizer, vocabulary, count, dtype and sha256");
    if (out.source.document_token.value_or(0) >= out.source.vocabulary)
        in.fail("needs a vocabulary that holds the document token");
    return out;
}

inline std::string sha256_of(const file_map& map) {
    sha256 sum;
    if (map.size() > 0) sum.add({reinterpret_cast<const char*>(map.data()), map.size()});
    return sum.hex();
}

inline std::uint32_t token_at(const unsigned char* place, unsigned bytes) {
    std::uint32_t token = 0;
    std::memcpy(&token, place, bytes);  // little-endian: the low bytes come first
    return token;
}

inline void check_token(const std::filesystem::path& path, std::uint64_t i, std::uint32_t token,
                        std::uint32_t vocabulary) {
    if (token < vocabulary) return;
    throw error(path.string() + ": token " + std::to_string(i) + " is " + std::to_string(token) +
                ", outside the vocabulary of " + std::to_string(vocabulary) +
                "; make the sidecar for the right tokenizer");
}

/// Checks header and size of a mapped token file and gives its layout; fills in the count.
inline const token_layout& check_token_header(const std::filesystem::path& path, const file_map& map,
                                              std::uint64_t& count) {
    std::array<std::int32_t, 3> head{};
    if (map.size() < token_header_bytes)
        throw error(path.string() + ": has " + std::to_string(map.size()) +
                    " bytes, a token file begins with a header of 1024; make it again with tokenize");
    std::memcpy(head.data(), map.data(), sizeof head);
    for (const token_layout& layout : token_layouts) {
        if (head[0] != layout.magic || head[1] != layout.version) continue;
        count = static_cast<std::uint32_t>(head[2]);
        if (head[2] < 1 || map.size() != token_header_bytes + count * layout.bytes)
            throw error(path.string() + ": its header states " + std::to_string(head[2]) + " tokens of type " +
                        std::string(layout.dtype) + ", its size is " + std::to_string(map.size()) +
                        " bytes; fetch or make it again");
        return layout;
    }
    throw error(path.string() + ": is no token file: magic " + std::to_string(head[0]) + ", version " +
                std::to_string(head[1]) + " instead of 20240520, 1 or 20240801, 7; make one with tokenize");
}

}  // namespace detail

/// A token file mapped into memory. Opening checks header, size, sidecar, checksum (unless trusted), and that every
/// token is below the vocabulary; each defect is an `sdepth::error`.
class token_file {
  public:
    explicit token_file(const std::filesystem::path& path, checksum policy = checksum::verify)
        : path_(path), map_(input_file(path)) {
        std::uint64_t count = 0;
        const detail::token_layout& layout = detail::check_token_header(path, map_, count);
        token_bytes_ = layout.bytes;
        description_ = detail::read_sidecar(path);
        if (description_.count != count || description_.dtype != layout.dtype)
            throw error(path.string() + ": holds " + std::to_string(count) + " tokens of type " +
                        std::string(layout.dtype) + ", its sidecar says " + std::to_string(description_.count) +
                        " of " + json_quote_short(description_.dtype) + "; make both again");
        if (policy == checksum::verify && detail::sha256_of(map_) != description_.sha256)
            throw error(path.string() + ": its SHA-256 is not the one in its sidecar; fetch or make both again");
        for (std::uint64_t i = 0; i < count; ++i)
            detail::check_token(path, i, (*this)[i], description_.source.vocabulary);
    }

    const std::filesystem::path& path() const { return path_; }
    const token_description& description() const { return description_; }

    /// Tokens.
    std::uint64_t size() const { return description_.count; }

    std::uint32_t operator[](std::uint64_t i) const {
        return detail::token_at(data() + i * token_bytes_, token_bytes_);
    }

    /// The tokens as they lie in the file, `token_bytes()` each.
    const unsigned char* data() const { return map_.data() + detail::token_header_bytes; }
    unsigned token_bytes() const { return token_bytes_; }

  private:
    std::filesystem::path path_;
    file_map map_;
    unsigned token_bytes_ = 0;
    token_description description_;
};

namespace detail {

/// The layout of the tokens of a vocabulary; llm.c's two tokenizers have one each.
inline const token_layout& layout_of(const token_source& about) {
    return token_layouts[about.vocabulary > 0x10000 ? 1 : 0];
}

inline void write_sidecar(const std::filesystem::path& path, const file_map& map, std::uint64_t count,
                          const token_source& about) {
    std::string text = "{\n  \"tokenizer\": " + json_quote(about.tokenizer) +
                       ",\n  \"vocabulary\": " + std::to_string(about.vocabulary) + ",\n";
    if (about.document_token) text += "  \"document_token\": " + std::to_string(*about.document_token) + ",\n";
    text += "  \"count\": " + std::to_string(count) + ",\n  \"dtype\": " + json_quote(layout_of(about).dtype) +
            ",\n  \"sha256\": \"" + sha256_of(map) + "\"\n}\n";
    output_file out(sidecar_path(path));
    out.write(text.data(), text.size(), 0);
    out.commit();
}

// Throws unless nothing is at `path` or a token file, whole or not.
inline void keep_other_files(const std::filesystem::path& path) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return;
    const file_map map{input_file(path)};
    std::int32_t magic = 0;
    if (map.size() >= sizeof magic) std::memcpy(&magic, map.data(), sizeof magic);
    for (const token_layout& layout : token_layouts)
        if (magic == layout.magic) return;
    throw error(path.string() + ": is no token file and is not replaced; move it or name another file");
}

// Refuses to change a sidecar that is right about the file and says something else.
inline void keep_sidecar(const std::filesystem::path& path, const token_source& about) {
    std::optional<token_source> stored;
    try {
        stored = token_file(path).description().source;
    } catch (const error&) {  // none there, or a wrong one: it may be written
        return;
    }
    if (*stored == about) return;
    throw error(sidecar_path(path).string() + ": fits the file and says tokenizer " +
                json_quote_short(stored->tokenizer) + ", vocabulary " + std::to_string(stored->vocabulary) +
                "; remove it if that is wrong");
}

}  // namespace detail

/// Writes the sidecar of the token file at `path`. Of `about`, the tokenizer, the vocabulary and the document token are
/// taken; the rest is found out. For files that other programs made. Throws `sdepth::error`, having written nothing, if
/// the vocabulary does not belong to the file's magic, a token lies outside it, or a valid sidecar says something else.
inline void describe_token_file(const std::filesystem::path& path, const token_source& about) {
    const file_map map{input_file(path)};
    std::uint64_t count = 0;
    const detail::token_layout& layout = detail::check_token_header(path, map, count);
    const detail::token_layout& wanted = detail::layout_of(about);
    if (layout.magic != wanted.magic)
        throw error(path.string() + ": holds tokens of type " + std::string(layout.dtype) + ", those of " +
                    json_quote_short(about.tokenizer) + " are " + std::string(wanted.dtype) +
                    "; name the tokenizer that made the file");
    const unsigned char* tokens = map.data() + detail::token_header_bytes;
    for (std::uint64_t i = 0; i < count; ++i)
        detail::check_token(path, i, detail::token_at(tokens + i * layout.bytes, layout.bytes), about.vocabulary);
    detail::keep_sidecar(path, about);
    detail::write_sidecar(path, map, count, about);
}

/// Writes a token file and its sidecar. The vocabulary decides between 16 and 32 bits a token. A token file that is
/// there is replaced; anything else is an error and stays.
inline void write_token_file(const std::filesystem::path& path, std::span<const std::uint32_t> tokens,
                             const token_source& about) {
    const detail::token_layout& layout = detail::layout_of(about);
    if (tokens.empty() || tokens.size() > std::numeric_limits<std::int32_t>::max())
        throw error(path.string() + ": not written: " + std::to_string(tokens.size()) +
                    " tokens, a token file holds 1 to 2147483647; split the text");
    detail::keep_other_files(path);
    std::vector<unsigned char> bytes(detail::token_header_bytes + tokens.size() * layout.bytes);
    const std::array<std::int32_t, 3> head{layout.magic, layout.version, static_cast<std::int32_t>(tokens.size())};
    std::memcpy(bytes.data(), head.data(), sizeof head);
    unsigned char* place = bytes.data() + detail::token_header_bytes;
    for (const std::uint32_t token : tokens) {
        if (token >= about.vocabulary)
            throw error(path.string() + ": not written: token " + std::to_string(token) +
                        " is outside the vocabulary of " + std::to_string(about.vocabulary) + "; raise it");
        std::memcpy(place, &token, layout.bytes);  // little-endian: the low bytes come first
        place += layout.bytes;
    }
    output_file out(path);
    out.write(bytes.data(), bytes.size(), 0);
    out.commit();
    detail::write_sidecar(path, file_map(input_file(path)), tokens.size(), about);
}

}  // namespace sdepth::inline v0
