// SPDX-License-Identifier: MIT
// libFuzzer: no bytes make the safetensors reader do anything but accept them or throw `sdepth::error`; and what it
// accepts, it can read and copy to the same content.
#include "sdepth/safetensors.hpp"

#include <cstdlib>
#include <cstring>

#include "memory_file.hpp"

using namespace sdepth;

namespace {

/// Reads every tensor, whatever its type, and writes the ones of type U8 to a second file that must read back the same.
void use(const safetensors_reader& in) {
    static const memory_folder folder;
    const auto copy = folder.path() / "copy";
    std::vector<safetensors_entry> bytes;
    for (const auto& entry : in.entries()) {
        if (in.find(entry.name) != &entry) std::abort();
        std::vector<float> numbers((entry.end - entry.begin) / 4);
        if (entry.dtype == "F32") in.read<float>(entry.name, entry.shape, numbers);
        if (entry.dtype == "U8") bytes.push_back(entry);
    }
    const auto content = [](const safetensors_reader& file, const safetensors_entry& entry) {
        std::vector<std::uint8_t> out(entry.end - entry.begin);
        file.read<std::uint8_t>(entry.name, entry.shape, out);
        return out;
    };
    {
        safetensors_writer out(copy, bytes, in.metadata());
        for (const auto& entry : bytes) out.write<std::uint8_t>(entry.name, content(in, entry));
        out.commit();
    }
    const safetensors_reader again(copy);
    if (again.metadata() != in.metadata() || again.entries().size() != bytes.size()) std::abort();
    for (const auto& entry : bytes)
        if (content(again, entry) != content(in, entry)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    static memory_file file;
    std::string bytes(reinterpret_cast<const char*>(data), size);
    // Beginning with '{', the input is a header up to the first 0, then data; else it is the whole file.
    if (bytes.starts_with('{')) {
        const std::uint64_t length = std::min(bytes.find('\0'), bytes.size());
        if (length < bytes.size()) bytes.erase(length, 1);
        std::string prefix(8, '\0');
        std::memcpy(prefix.data(), &length, 8);
        bytes = prefix + bytes;
    }
    file.set(bytes);
    try {
        use(safetensors_reader(file.path()));
    } catch (const error&) {
    }
    return 0;
}
