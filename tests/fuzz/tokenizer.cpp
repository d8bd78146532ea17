// SPDX-License-Identifier: MIT
// libFuzzer: no rank file and no text make the tokenizer do anything but work or throw `sdepth::error`; decoding undoes
// encoding; and the merges are those of the slow loop that BPE is defined by.
#include <array>
#include <cstdlib>

#include "gpt2_tokenizer.hpp"

using sdepth_tools::gpt2_tokenizer;

namespace {

constexpr std::array<std::string_view, 12> merges{"aa", "ab",  "ba",       "aba", "abab", "bb",
                                                  " a", "aaa", "\xC3\xA9", "  ",  "11",   "aab"};

std::string base64(std::string_view bytes) {
    constexpr const char* digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    std::string out;
    for (std::size_t at = 0; at < bytes.size(); at += 3) {
        std::uint32_t bits = 0;
        for (std::size_t i = 0; i < 3; ++i)
            bits = bits << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0u);
        for (std::size_t i = 0; i < 4; ++i) out += at + i <= bytes.size() ? digits[bits >> (18 - 6 * i) & 63] : '=';
    }
    return out;
}

const gpt2_tokenizer& small_tokenizer() {
    static const gpt2_tokenizer made = [] {
        std::string ranks;
        int number = 0;
        for (int byte = 0; byte < 256; ++byte)
            ranks += base64(std::string(1, static_cast<char>(byte))) + ' ' + std::to_string(number++) + '\n';
        for (const auto token : merges) ranks += base64(token) + ' ' + std::to_string(number++) + '\n';
        return gpt2_tokenizer(ranks, "small");
    }();
    return made;
}

/// Byte-pair encoding of one piece, as it is defined: join the leftmost pair of the lowest rank until there is none.
std::vector<std::uint32_t> slow(std::string_view piece) {
    const auto rank = [](std::string_view token) -> std::size_t {
        if (token.size() == 1) return static_cast<unsigned char>(token[0]);
        const auto found = std::find(merges.begin(), merges.end(), token);
        return found == merges.end() ? std::string::npos : 256 + static_cast<std::size_t>(found - merges.begin());
    };
    std::vector<std::string> parts;
    for (const char c : piece) parts.emplace_back(1, c);
    if (rank(piece) != std::string::npos) parts = {std::string(piece)};
    for (;;) {
        std::size_t best = std::string::npos, place = 0;
        for (std::size_t i = 0; i + 1 < parts.size(); ++i)
            if (const std::size_t r = rank(parts[i] + parts[i + 1]); r < best) best = r, place = i;
        if (best == std::string::npos) break;
        parts[place] += parts[place + 1];
        parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(place) + 1);
    }
    std::vector<std::uint32_t> out;
    for (const auto& part : parts) out.push_back(static_cast<std::uint32_t>(rank(part)));
    return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    if (input.empty()) return 0;
    const std::string_view rest = input.substr(1);
    try {
        if (input[0] == 'r') {
            const gpt2_tokenizer made(rest, "fuzz");
        } else if (input[0] == 'w') {  // one word: a piece of letters is what GPT-2's pattern leaves whole
            std::string word;
            for (const char c : rest) word += (c & 1) ? 'a' : 'b';
            if (!word.empty() && small_tokenizer().encode(word, "fuzz") != slow(word)) std::abort();
        } else {
            if (small_tokenizer().decode(small_tokenizer().encode(rest, "fuzz")) != rest) std::abort();
        }
    } catch (const sdepth::error&) {
    }
    return 0;
}
