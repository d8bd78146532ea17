// SPDX-License-Identifier: MIT
// Loads a checkpoint and asks it which bytes may follow a text: use_model MODEL.safetensors TEXT
#include <cmath>
#include <cstdio>

#include "common/failure.hpp"
#include "models/small_x_mod.hpp"
#include "sdepth/checkpoint.hpp"
#include "sdepth/decoder.hpp"
#include "sdepth/kernels/host/host.hpp"

int main(int argc, char** argv) try {
    if (argc != 3 || argv[2][0] == '\0') throw sdepth::error("usage: use_model MODEL.safetensors TEXT");

    sdepth::host<float> backend;
    sdepth::decoder<examples::SmallXMoD, sdepth::host<float>, sdepth::Run{.seq = 64, .context = 1024}> model(backend);
    sdepth::checkpoint(model).load_model(argv[1]);

    std::vector<int> bytes;
    for (const char* c = argv[2]; *c != '\0'; ++c) bytes.push_back(static_cast<unsigned char>(*c));
    const std::vector<float> logits = model.extend({bytes})[0];  // [256], of the byte after the text

    double sum = 0;
    for (const float z : logits) sum += std::exp(static_cast<double>(z));
    for (std::size_t byte = 0; byte < logits.size(); ++byte) {
        const double probability = std::exp(static_cast<double>(logits[byte])) / sum;
        if (probability > 0.02)
            std::printf("%3zu '%c'  %.3f\n", byte, byte < 32 ? ' ' : static_cast<char>(byte), probability);
    }
    examples::check_output();
} catch (const std::exception& e) {
    return examples::failed(e);
}
