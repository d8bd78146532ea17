// SPDX-License-Identifier: MIT
// What a run is asked to do, what of it cannot be, and in what a resumed run may differ from the one that was saved.
// Rank 7.
#pragma once

#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "sdepth/checkpoint.hpp"
#include "sdepth/error.hpp"
#include "sdepth/file.hpp"
#include "sdepth/json.hpp"

namespace sdepth::inline v0 {

/// What a run is asked to do. Sizes of the model and of a micro-batch are in the pipeline's type.
struct training_settings {
    long long steps = 1000;
    long long sequences = 0;  ///< of one optimiser step, a multiple of Run::batch; 0 = one micro-batch
    optimiser kind = optimiser::adamw;
    double rate = 1e-3;    ///< peak learning rate
    double warmup = 0.01;  ///< share of the steps in which the rate rises to its peak
    double decay = 0.1;
    double clip = 1;
    std::uint64_t seed = 1;
    long long log_every = 1;             ///< steps between two readings of the losses, which wait for the backend
    long long evaluate_every = 0;        ///< steps; 0 = at the end only
    long long save_every = 0;            ///< steps; 0 = at the end only
    std::filesystem::path checkpoint{};  ///< training file; empty = none
    std::filesystem::path log{};         ///< JSON Lines; empty = none
    bool overwrite = false;              ///< a new run may replace the training file of another at `checkpoint`
    bool change_rate = false;            ///< a resumed run goes on with `rate`, whatever it was saved with
};

namespace detail {

inline void check_settings(const training_settings& s, long long micro_batch, long long length) {
    const auto whole = [](const std::string& what, long long x, long long least) {
        if (x < least) throw error(what + " " + std::to_string(x) + ": must be at least " + std::to_string(least));
    };
    const auto real = [](const std::string& what, double x, bool good, const std::string& want) {
        if (!good || !std::isfinite(x)) throw error(what + " " + exact(x) + ": must be " + want);
    };
    whole("steps", s.steps, 1);
    whole("log_every", s.log_every, 0);
    whole("evaluate_every", s.evaluate_every, 0);
    whole("save_every", s.save_every, 0);
    real("learning rate", s.rate, s.rate > 0, "a number above 0");
    real("warm-up", s.warmup, s.warmup >= 0 && s.warmup <= 1, "a share of the steps, from 0 to 1");
    real("decay", s.decay, s.decay >= 0, "a number of at least 0");
    real("clip", s.clip, s.clip >= 0, "a number of at least 0");

    const long long sequences = s.sequences == 0 ? micro_batch : s.sequences;
    if (sequences < 1 || sequences % micro_batch != 0) {
        throw error("a step of " + std::to_string(sequences) + " sequences is no multiple of the micro-batch of " +
                    std::to_string(micro_batch) + "; change the batch");
    }
    if (sequences > std::numeric_limits<std::int32_t>::max() / length) {
        throw error("a step of " + std::to_string(sequences) + " sequences of " + std::to_string(length) +
                    " tokens has more than 2147483647 tokens; lower the batch");
    }
    if (s.steps > std::numeric_limits<long long>::max() / (sequences * length))
        throw error(std::to_string(s.steps) + " steps have more tokens than 64 bits count; lower the steps");
    if (!s.log.empty() && !s.checkpoint.empty() && same_file(s.log, s.checkpoint))
        throw error(s.log.string() + ": is named as log and as checkpoint; name two files");
}

/// Says in what a saved run and this one differ that must be equal; empty if in nothing.
inline std::string difference(const training_state& stored, const training_state& own) {
    std::string first;
    const auto compare = [&](const std::string& what, const std::string& a, const std::string& b) {
        if (a != b && first.empty())
            first =
                "was saved by a run with " + what + " " + a + ", this run has " + b + "; resume with the same settings";
    };
    using std::to_string;
    compare("steps", to_string(stored.steps), to_string(own.steps));
    compare("seed", to_string(stored.seed), to_string(own.seed));
    compare("sequences a step", to_string(stored.sequences), to_string(own.sequences));
    compare("tokens a sequence", to_string(stored.length), to_string(own.length));
    compare("text tokens", to_string(stored.tokens), to_string(own.tokens));
    compare("a text of digest", stored.text, own.text);
    compare("optimiser", name_of(stored.kind), name_of(own.kind));
    compare("warm-up", exact(stored.warmup), exact(own.warmup));
    compare("decay", exact(stored.decay), exact(own.decay));
    compare("clip", exact(stored.clip), exact(own.clip));
    compare("learning rate", exact(stored.rate), exact(own.rate));
    if (stored.rate != own.rate && first.find("learning rate") != std::string::npos)
        first += ", or change the rate and say so (change_rate)";
    return first;
}

}  // namespace detail

}  // namespace sdepth::inline v0
