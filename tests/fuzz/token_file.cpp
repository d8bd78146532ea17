// SPDX-License-Identifier: MIT
// libFuzzer: no token file and no sidecar make the readers do anything but accept them or throw `sdepth::error`; and
// what they accept gives batches whose tokens lie in the vocabulary.
#include <cstdlib>
#include <cstring>
#include <fstream>

#include "memory_file.hpp"
#include "sdepth/data.hpp"

using namespace sdepth;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static const memory_folder folder;
    const auto path = folder.path() / "x.bin";
    // The sidecar up to the first 0, then the token file. A first byte of 1 or 2 in the file stands for a right header.
    const std::string_view input(reinterpret_cast<const char*>(data), size);
    const std::size_t cut = std::min(input.find('\0'), input.size());
    std::string bytes(input.substr(std::min(cut + 1, input.size())));
    if (bytes.starts_with('\1') || bytes.starts_with('\2')) {
        const auto& layout = detail::token_layouts[bytes[0] - 1];
        const std::array<std::int32_t, 3> head{layout.magic, layout.version,
                                               static_cast<std::int32_t>((bytes.size() - 1) / layout.bytes)};
        std::string header(1024, '\0');
        std::memcpy(header.data(), head.data(), sizeof head);
        bytes = header + bytes.substr(1);
    }
    std::ofstream(path, std::ios::binary) << bytes;
    std::ofstream(path.string() + ".json", std::ios::binary) << input.substr(0, cut);
    for (const checksum policy : {checksum::verify, checksum::trust}) try {
            const corpus text = corpus::open(path, policy);
            const validation_batches batches(text, {.length = 5, .sequences = 2});
            token_batch batch;
            std::uint64_t tokens = 0;
            for (std::uint64_t i = 0; i < batches.count(); ++i) {
                batches.fill(i, batch);
                for (const int t : batch.tokens)
                    if (t < 0 || static_cast<std::uint32_t>(t) >= text.vocabulary()) std::abort();
                for (const int t : batch.targets)
                    if (t < -1 || t >= static_cast<int>(text.vocabulary())) std::abort();
                for (const int live : batch.live) tokens += static_cast<std::uint64_t>(live);
            }
            if (tokens != text.size()) std::abort();
        } catch (const error&) {
        }
    return 0;
}
