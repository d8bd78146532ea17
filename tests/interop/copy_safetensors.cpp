// SPDX-License-Identifier: MIT
// copy_safetensors IN OUT: reads a file with the library's reader and writes its content with the library's writer.
// tests/interop/safetensors_round_trip.py compares both files by means of the Python package.
#include <cstdio>

#include "sdepth/safetensors.hpp"

using namespace sdepth;

namespace {

template <class... T>
void copy(const safetensors_reader& in, const safetensors_entry& entry, safetensors_writer& out) {
    const auto one = [&]<class U>(U) {
        if (entry.dtype != safetensors_dtype<U>) return false;
        std::vector<U> numbers((entry.end - entry.begin) / sizeof(U));
        in.read<U>(entry.name, entry.shape, numbers);
        out.write<U>(entry.name, numbers);
        return true;
    };
    if (!(one(T{}) || ...)) throw error(entry.name + ": no C++ type for " + entry.dtype);
}

}  // namespace

int main(int argc, char** argv) try {
    if (argc != 3) throw error("usage: copy_safetensors IN OUT");
    const safetensors_reader in(argv[1]);
    safetensors_writer out(argv[2], in.entries(), in.metadata());
    for (const auto& entry : in.entries())
        copy<double, float, bfloat16, std::int64_t, std::int32_t, std::int8_t, std::uint64_t, std::uint32_t,
             std::uint16_t, std::uint8_t>(in, entry, out);
    out.commit();
} catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
}
