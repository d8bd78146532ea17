// SPDX-License-Identifier: MIT
// A small model, a small text and a run of a few steps, for tests of the trainer and its files.
#pragma once

#include <atomic>
#include <fstream>
#include <string>
#include <vector>

#include "sdepth/sdepth.hpp"
#include "sdepth/trainer.hpp"
#include "support/host_operations.hpp"
#include "support/refusal.hpp"
#include "support/temporary_folder.hpp"

namespace small_training {

using namespace sdepth;
using namespace sdepth::literals;

constexpr Dims small{.width = 16, .head_dim = 8, .heads = 2, .kv_heads = 1, .ffn = 24, .vocab = 256};
using XMoD = Model<dense + sparse<2> * 2_c + dense, small>;
constexpr Run pairs{.seq = 12, .batch = 2};

template <class M, Run R = pairs>
struct training_of {
    host<float> backend{1};
    pipeline<M, host<float>, R> model{backend};

    std::vector<float> weights() const {
        return {model.parameters().weights, model.parameters().weights + tensor_table<M>.elements};
    }
};

inline std::string text(int sentences) {
    std::string out;
    for (int i = 0; i < sentences; ++i) out += "sentence " + std::to_string(i * i % 37) + " of a small text. ";
    return out;
}
inline corpus written(const temporary_folder& folder, const std::string& name, int sentences) {
    std::ofstream(folder.path() / name) << text(sentences);
    return corpus::open(folder.path() / name);
}

template <class M, Run R>
void run_to_end(trainer<pipeline<M, host<float>, R>>& training, long long stop_after) {
    std::atomic<bool> stop{false};
    training.run(
        stop, [&](const progress& now) { stop = now.step == stop_after; }, [](long long, const evaluation&) {});
}

}  // namespace small_training
