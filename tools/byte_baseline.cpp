// SPDX-License-Identifier: MIT
// byte_baseline TRAINING HELD_OUT: prints the loss of an order-2 byte model, trained on the first text (file or folder)
// and measured on the second, in nats per byte.
#include <cstdio>
#include <exception>

#include "common/byte_baseline.hpp"

int main(int argc, char** argv) try {
    if (argc != 3) {
        std::fprintf(stderr, "usage: byte_baseline TRAINING HELD_OUT\n");
        return 2;
    }
    const double loss = byte_baseline(sdepth::corpus::open(argv[1]), sdepth::corpus::open(argv[2]));
    std::printf("order-2 byte model: %.4f nats per byte\n", loss);
} catch (const std::exception& problem) {
    std::fprintf(stderr, "%s\n", problem.what());
    return 1;
}
