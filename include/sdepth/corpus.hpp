// SPDX-License-Identifier: MIT
// A corpus: documents of tokens in a fixed order, from text (as bytes) or token files, and its held-out part. Knows
// neither batches nor the order of training. Rank 7.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <iterator>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "sdepth/error.hpp"
#include "sdepth/file.hpp"
#include "sdepth/json.hpp"
#include "sdepth/token_file.hpp"
#include "sdepth/word_digest.hpp"

namespace sdepth::inline v0 {

/// Tokens of text read as bytes. Document boundaries are kept beside the bytes, so no token is spent on them.
inline constexpr std::uint32_t byte_vocabulary = 256;

struct corpus_split;

/// Documents in a fixed order, one after the other: token i has position i. A copy shares the text.
class corpus {
  public:
    /// What `path` holds: a token file (`*.bin`), a folder of token files, a text file, or a folder of text files. Of a
    /// folder all files count, also in folders inside it, in the byte order of their relative paths, except names that
    /// begin with a dot. A text file is one document; it is read into memory. In token files a document begins with the
    /// file or at the sidecar's document token; they are mapped. Throws `sdepth::error` if nothing usable is there.
    static corpus open(const std::filesystem::path& path, checksum policy = checksum::verify) {
        std::error_code ignored;
        const std::filesystem::file_status status = std::filesystem::status(path, ignored);
        if (!std::filesystem::exists(status)) throw error(path.string() + ": does not exist; name a file or folder");
        const bool folder = std::filesystem::is_directory(status);
        const std::vector<std::string> names = folder ? files_of(path) : std::vector{path.filename().string()};
        const auto base = folder ? path : path.parent_path();
        const bool binary = std::any_of(names.begin(), names.end(), [](const auto& n) { return n.ends_with(".bin"); });
        corpus out;
        if (binary)
            out.add_token_files(base, names, policy);
        else
            out.add_text(base, names);
        if (out.size_ == 0) throw error(path.string() + ": holds no text; name a file or folder that does");
        return out;
    }

    /// "bytes", or the tokenizer of the token files.
    const std::string& tokenizer() const { return tokenizer_; }
    std::uint32_t vocabulary() const { return vocabulary_; }

    /// Tokens.
    std::uint64_t size() const { return size_; }

    /// Positions at which documents begin; the first is 0.
    std::span<const std::uint64_t> document_starts() const { return starts_; }

    /// Copies the tokens from `position` on into `to`; all must exist.
    void read(std::uint64_t position, std::span<std::int32_t> to) const {
        auto piece = std::upper_bound(pieces_.begin(), pieces_.end(), position,
                                      [](std::uint64_t p, const piece_of_file& x) { return p < x.first; });
        --piece;
        for (std::int32_t& token : to) {
            if (position == piece->first + piece->size) ++piece;
            token = static_cast<std::int32_t>(piece->token(position++ - piece->first));
        }
    }

    /// Digest of tokens, vocabulary and document bounds: 16 hexadecimal digits. Reads the whole text.
    std::string digest() const {
        word_digest sum;
        sum.add(vocabulary_);
        sum.add(std::span<const std::uint64_t>(starts_));
        std::vector<std::int32_t> tokens;
        for (std::uint64_t at = 0; at < size_; at += tokens.size()) {
            tokens.resize(std::min<std::uint64_t>(size_ - at, 1 << 16));
            read(at, tokens);
            sum.add(std::span<const std::int32_t>(tokens));
        }
        return sum.hex();
    }

    /// Splits at the document boundary for which the last documents hold the share of all tokens nearest to `fraction`;
    /// each part gets at least one document. A corpus of one document is cut inside it.
    corpus_split split(double fraction) const;

    /// Holds out the file called `name` (its path inside the folder).
    corpus_split split(std::string_view name) const;

  private:
    struct piece_of_file {
        std::string name;
        const unsigned char* data;
        unsigned token_bytes;
        std::uint64_t first, size;  // position of its first token, tokens

        std::uint32_t token(std::uint64_t i) const {
            const unsigned char* place = data + i * token_bytes;
            std::uint32_t value = 0;
            for (unsigned b = 0; b < token_bytes; ++b) value |= std::uint32_t{place[b]} << (8 * b);
            return value;
        }
    };

    static std::vector<std::string> files_of(const std::filesystem::path& folder) {
        namespace fs = std::filesystem;
        std::vector<std::string> names;
        try {
            auto entry = fs::recursive_directory_iterator(folder, fs::directory_options::follow_directory_symlink);
            for (; entry != fs::recursive_directory_iterator(); ++entry) {
                const bool hidden = entry->path().filename().string().starts_with('.');
                if (hidden && entry->is_directory()) entry.disable_recursion_pending();
                if (hidden || entry->is_directory()) continue;
                if (!entry->is_regular_file())
                    throw error(entry->path().string() + ": is neither a file nor a folder; remove it");
                names.push_back(entry->path().lexically_relative(folder).generic_string());
            }
        } catch (const fs::filesystem_error& problem) {
            throw error(problem.path1().string() + ": cannot be read: " + problem.code().message() +
                        "; mend the folder or name another");
        }
        std::sort(names.begin(), names.end());
        return names;
    }

    void add_text(const std::filesystem::path& base, const std::vector<std::string>& names) {
        tokenizer_ = "bytes";
        vocabulary_ = byte_vocabulary;
        for (const std::string& name : names) {
            auto text = std::make_shared<const std::string>(input_file(base / name).text());
            if (text->empty()) continue;
            starts_.push_back(size_);
            add_piece({name, reinterpret_cast<const unsigned char*>(text->data()), 1, size_, text->size()}, text);
        }
    }

    void add_token_files(const std::filesystem::path& base, const std::vector<std::string>& names, checksum policy) {
        for (const std::string& name : names) {
            if (name.ends_with(".bin.json")) continue;
            if (!name.ends_with(".bin"))
                throw error((base / name).string() + ": lies among token files (*.bin); keep text and tokens apart");
            const auto file = std::make_shared<const token_file>(base / name, policy);
            const token_source& about = file->description().source;
            if (pieces_.empty()) {
                tokenizer_ = about.tokenizer;
                vocabulary_ = about.vocabulary;
            } else if (about.tokenizer != tokenizer_ || about.vocabulary != vocabulary_) {
                throw error((base / name).string() + ": holds tokens of " + json_quote_short(about.tokenizer) +
                            ", the files before it of " + json_quote_short(tokenizer_) + "; keep them apart");
            }
            starts_.push_back(size_);
            if (about.document_token)
                for (std::uint64_t i = 1; i < file->size(); ++i)
                    if ((*file)[i] == *about.document_token) starts_.push_back(size_ + i);
            add_piece({name, file->data(), file->token_bytes(), size_, file->size()}, file);
        }
    }

    void add_piece(piece_of_file piece, std::shared_ptr<const void> owner) {
        size_ += piece.size;
        pieces_.push_back(std::move(piece));
        owners_.push_back(std::move(owner));
    }

    /// Appends the tokens [begin, end) of `whole`, whose documents keep their bounds.
    void append(const corpus& whole, std::uint64_t begin, std::uint64_t end) {
        if (begin == end) return;
        starts_.push_back(size_);
        for (const std::uint64_t start : whole.starts_)
            if (start > begin && start < end) starts_.push_back(size_ + start - begin);
        for (std::size_t i = 0; i < whole.pieces_.size(); ++i) {
            piece_of_file piece = whole.pieces_[i];
            const std::uint64_t from = std::max(begin, piece.first), to = std::min(end, piece.first + piece.size);
            if (from >= to) continue;
            piece.data += (from - piece.first) * piece.token_bytes;
            piece.first = size_;
            piece.size = to - from;
            add_piece(std::move(piece), whole.owners_[i]);
        }
    }

    corpus_split cut(std::uint64_t begin, std::uint64_t end) const;

    std::string tokenizer_;
    std::uint32_t vocabulary_ = 0;
    std::uint64_t size_ = 0;
    std::vector<piece_of_file> pieces_;
    std::vector<std::shared_ptr<const void>> owners_;
    std::vector<std::uint64_t> starts_;
};

/// A corpus in two parts that share no token.
struct corpus_split {
    corpus training, held_out;
};

/// Holds out the tokens [begin, end).
inline corpus_split corpus::cut(std::uint64_t begin, std::uint64_t end) const {
    corpus_split out;
    for (corpus* part : {&out.training, &out.held_out}) {
        part->tokenizer_ = tokenizer_;
        part->vocabulary_ = vocabulary_;
    }
    out.training.append(*this, 0, begin);
    out.training.append(*this, end, size_);
    out.held_out.append(*this, begin, end);
    if (out.training.size() == 0 || out.held_out.size() == 0)
        throw error("the corpus of " + std::to_string(size_) +
                    " tokens cannot be split: a part would be empty; give more text or another held-out part");
    return out;
}

inline corpus_split corpus::split(double fraction) const {
    if (!(fraction > 0 && fraction < 1))
        throw error("held-out fraction " + json_number(fraction) + ": must lie between 0 and 1, such as 0.1");
    const double target = static_cast<double>(size_) * (1 - fraction);
    if (starts_.size() == 1) return cut(static_cast<std::uint64_t>(std::llround(target)), size_);
    const auto distance = [&](std::uint64_t start) { return std::abs(static_cast<double>(start) - target); };
    const auto best = std::min_element(starts_.begin() + 1, starts_.end(),
                                       [&](std::uint64_t a, std::uint64_t b) { return distance(a) < distance(b); });
    return cut(*best, size_);
}

inline corpus_split corpus::split(std::string_view name) const {
    for (const piece_of_file& piece : pieces_)
        if (piece.name == name) return cut(piece.first, piece.first + piece.size);
    throw error("held-out file " + json_quote_short(name) + ": is not in the corpus; the first file there is " +
                json_quote_short(pieces_.front().name));
}

}  // namespace sdepth::inline v0
