// SPDX-License-Identifier: MIT
// Model and training files: safetensors of fp32 logical tensors, the same from every backend. Rank 7.
//
// A model file holds the tensors of the tensor table and can be loaded for evaluation or as a start; a training file
// also holds the optimiser's moments and where the run stands, and resumes it bit for bit.
#pragma once

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "sdepth/contract.hpp"
#include "sdepth/pipeline.hpp"
#include "sdepth/run_record.hpp"
#include "sdepth/safetensors.hpp"
#include "sdepth/word_digest.hpp"

namespace sdepth::inline v0 {

/// Where a training run stands, and the settings that fix what it will do next.
struct training_state {
    long long step = 0;        ///< steps done
    long long steps = 0;       ///< of the whole run: the schedule depends on it
    std::uint64_t seed = 0;    ///< of initialisation and data order
    long long sequences = 0;   ///< of one optimiser step
    std::uint64_t tokens = 0;  ///< in the training text
    optimiser kind = optimiser::adamw;
    double rate = 0;       ///< peak learning rate
    double warmup = 0;     ///< share of the steps in which the rate rises
    double decay = 0;      ///< of weights
    double clip = 0;       ///< of the gradient's norm
    long long length = 0;  ///< tokens of a sequence
    std::string text{};    ///< digest of the training text

    friend bool operator==(const training_state&, const training_state&) = default;
};

namespace detail {

inline std::vector<std::uint64_t> file_shape(const tensor_row& row) {
    if (row.cols == 0) return {static_cast<std::uint64_t>(row.rows)};
    return {static_cast<std::uint64_t>(row.rows), static_cast<std::uint64_t>(row.cols)};
}

inline constexpr std::string_view moment_prefixes[] = {"optimizer.first.", "optimizer.second."};

inline std::string name_of(optimiser kind) { return kind == optimiser::muon ? "muon" : "adamw"; }

// Whether a training file has this moment of a tensor: Muon keeps no second one of its matrices.
inline bool file_has_moment(optimiser kind, const tensor_row& tensor, int moment) {
    return tensor.trained && (moment == 0 || kind == optimiser::adamw || tensor.group != update_group::muon);
}

// Shortest text that reads back as the same number.
inline std::string exact(double x) {
    char text[64];
    return {text, std::to_chars(text, text + sizeof text, x).ptr};
}

template <class Number>
Number metadata_number(const safetensors_reader& file, const std::string& key) {
    const auto found = file.metadata().find(key);
    Number value{};
    if (found != file.metadata().end()) {
        const std::string& text = found->second;
        const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), value);
        if (failed == std::errc() && end == text.data() + text.size()) return value;
    }
    throw error(file.path().string() + ": its metadata has no number " + key + "; it is not a training file of sdepth");
}

// The same, within [least, most].
template <class Number>
Number metadata_number(const safetensors_reader& file, const std::string& key, Number least, Number most) {
    const auto value = metadata_number<Number>(file, key);
    if (value >= least && value <= most) return value;
    throw error(file.path().string() + ": its metadata has " + file.metadata().at(key) + " as " + key +
                ", which no run has; fetch or save the file again");
}

inline std::string metadata_text(const safetensors_reader& file, const std::string& key) {
    const auto found = file.metadata().find(key);
    if (found == file.metadata().end()) {
        throw error(file.path().string() + ": its metadata has no " + key + "; it was not saved by sdepth");
    }
    return found->second;
}

// The first line of `stored` that `own` has otherwise, and that line of `own`.
inline std::string first_difference(std::string_view stored, std::string_view own) {
    const auto line = [](std::string_view& text) {
        const auto end = text.find('\n');
        const std::string_view first = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
        return first;
    };
    while (!stored.empty() || !own.empty()) {
        const std::string_view a = line(stored), b = line(own);
        if (a != b && a.substr(0, 7) != "digest:") {
            return "the file says \"" + std::string(a) + "\", this program \"" + std::string(b) + "\"";
        }
    }
    return "the contracts read the same";
}

// Throws unless nothing is at `path` or a file that sdepth saved.
inline void check_replaceable(const std::filesystem::path& path) {
    std::error_code ignored;
    if (!std::filesystem::exists(path, ignored)) return;
    try {
        metadata_text(safetensors_reader(path), "sdepth.kind");
    } catch (const error& why) {
        throw error(std::string(why.what()) + "; what is no checkpoint is not replaced: move it or name another file");
    }
}

template <class M>
void check_digest(const safetensors_reader& file) {
    const std::string stored = metadata_text(file, "sdepth.digest");
    if (stored == digest_text(digest<M>)) return;
    throw error(file.path().string() + ": is of another model, digest " + stored + " where this program has " +
                digest_text(digest<M>) + ": " +
                first_difference(metadata_text(file, "sdepth.contract"), contract_text<M>()) +
                "; compile the formula that the file was saved with");
}

}  // namespace detail

/// Reads and writes the files of one pipeline.
template <class Pipeline>
class checkpoint {
    using M = typename Pipeline::model;

  public:
    explicit checkpoint(Pipeline& pipeline) : pipeline_(pipeline) {}

    /// Saves the model alone. A file that was there stays whole until the new one is complete; one that sdepth did not
    /// save is never replaced.
    void save_model(const std::filesystem::path& path) { save(path, metadata("model", {}), contents{}); }

    /// Saves model, optimiser and the run's place. Throws sdepth::error if the pipeline keeps too few moments for
    /// `at.kind`.
    void save_training(const std::filesystem::path& path, const training_state& at) {
        Pipeline::require_moments(at.kind);
        safetensors_metadata meta = metadata("training", at);
        meta["sdepth.step"] = std::to_string(at.step);
        meta["sdepth.steps"] = std::to_string(at.steps);
        meta["sdepth.seed"] = std::to_string(at.seed);
        meta["sdepth.sequences"] = std::to_string(at.sequences);
        meta["sdepth.length"] = std::to_string(at.length);
        meta["sdepth.tokens"] = std::to_string(at.tokens);
        meta["sdepth.text"] = at.text;
        meta["sdepth.optimiser"] = detail::name_of(at.kind);
        meta["sdepth.rate"] = detail::exact(at.rate);
        meta["sdepth.warmup"] = detail::exact(at.warmup);
        meta["sdepth.decay"] = detail::exact(at.decay);
        meta["sdepth.clip"] = detail::exact(at.clip);
        save(path, meta, {true, at.kind});
    }

    /// Tries whether a training file of a run with optimiser `kind` can be saved at `path`: folder, permission, what is
    /// there, room on the disk. Throws sdepth::error if not, and leaves no trace.
    static void try_training(const std::filesystem::path& path, optimiser kind) {
        detail::check_replaceable(path);
        std::uint64_t bytes = 0;
        for_each_entry({true, kind}, [&](const std::string&, const file_tensor& t, int) {
            bytes += static_cast<std::uint64_t>(t.elements) * sizeof(float);
        });
        output_file(path).reserve(bytes);
    }

    /// Loads the tensors of a model or training file. Throws sdepth::error, having changed nothing, if the file is
    /// damaged, foreign, of another model, has a tensor missing, too many or of another shape or type, or a number that
    /// is not finite.
    void load_model(const std::filesystem::path& path) {
        const safetensors_reader file(path);
        const bool training = detail::metadata_text(file, "sdepth.kind") == "training";
        check(file, training ? contents{true, kind_of(file)} : contents{});
        compare_runs(file);
        load(file, {});
    }

    /// Loads a training file whole, unless `check_state`, called with its state, throws.
    template <class Check>
    training_state load_training(const std::filesystem::path& path, Check check_state) {
        const safetensors_reader file(path);
        if (detail::metadata_text(file, "sdepth.kind") != "training") {
            throw error(path.string() + ": is a model without optimiser state; give a training file to resume");
        }
        detail::check_digest<M>(file);
        training_state at = state_of(file);
        check_state(at);
        Pipeline::require_moments(at.kind);
        check(file, {true, at.kind});
        compare_runs(file);
        pipeline_.reset_optimiser();  // the file may have fewer moments than there is memory for
        load(file, {true, at.kind});
        return at;
    }
    training_state load_training(const std::filesystem::path& path) {
        return load_training(path, [](const training_state&) {});
    }

    /// Where the run of the file loaded last and this program's differ, a text each: storage types, sizes, losses. None
    /// of them keeps a file from loading.
    const std::vector<std::string>& differences() const { return differences_; }

  private:
    // The contract as a file of a run at `at` holds it; what `at` leaves 0 is not stated.
    static std::string contract(const training_state& at) {
        run_record record = record_of<Pipeline>();
        if (at.sequences > 0) record.run.accumulate = at.sequences / record.run.batch;
        const std::string rule = detail::name_of(at.kind) + ", peak rate " + detail::exact(at.rate) + ", warm-up " +
                                 detail::exact(at.warmup) + ", decay " + detail::exact(at.decay) + ", clip " +
                                 detail::exact(at.clip);
        if (at.steps > 0) record.optimiser = rule;
        return contract_text<M>(record);
    }
    void compare_runs(const safetensors_reader& file) {
        training_state at;
        if (detail::metadata_text(file, "sdepth.kind") == "training")
            at.sequences = detail::metadata_number<long long>(file, "sdepth.sequences");
        differences_ = run_differences(detail::metadata_text(file, "sdepth.contract"), contract(at));
    }

    static safetensors_metadata metadata(const std::string& kind, const training_state& at) {
        return {{"format", "pt"},
                {"sdepth.version", SDEPTH_VERSION_STRING},
                {"sdepth.kind", kind},
                {"sdepth.digest", digest_text(digest<M>)},
                {"sdepth.contract", contract(at)}};
    }

    static optimiser kind_of(const safetensors_reader& file) {
        const std::string kind = detail::metadata_text(file, "sdepth.optimiser");
        if (kind == "adamw") return optimiser::adamw;
        if (kind == "muon") return optimiser::muon;
        throw error(file.path().string() + ": names the optimiser \"" + kind + "\"; this program knows adamw and muon");
    }

    static training_state state_of(const safetensors_reader& file) {
        constexpr long long whole = std::numeric_limits<long long>::max();
        constexpr double real = std::numeric_limits<double>::max();
        training_state at{.steps = detail::metadata_number(file, "sdepth.steps", 1LL, whole),
                          .seed = detail::metadata_number<std::uint64_t>(file, "sdepth.seed"),
                          .sequences = detail::metadata_number(file, "sdepth.sequences", 0LL, whole),
                          .tokens = detail::metadata_number<std::uint64_t>(file, "sdepth.tokens"),
                          .rate = detail::metadata_number(file, "sdepth.rate", 0.0, real),
                          .warmup = detail::metadata_number(file, "sdepth.warmup", 0.0, 1.0),
                          .decay = detail::metadata_number(file, "sdepth.decay", 0.0, real),
                          .clip = detail::metadata_number(file, "sdepth.clip", 0.0, real),
                          .length = detail::metadata_number(file, "sdepth.length", 0LL, whole),
                          .text = detail::metadata_text(file, "sdepth.text")};
        at.step = detail::metadata_number(file, "sdepth.step", 0LL, at.steps);
        at.kind = kind_of(file);
        return at;
    }

    // What a file holds beside the weights.
    struct contents {
        bool training = false;
        optimiser kind = optimiser::adamw;
    };
    // Every tensor of a file as f(name, tensor, region): region 0 the weights, 1 and 2 the moments.
    template <class F>
    static void for_each_entry(const contents& has, F f) {
        for_each_file_tensor<M>([&](const file_tensor& t) { f(t.name, t, 0); });
        if (!has.training) return;
        for (int moment = 0; moment < 2; ++moment) {
            for_each_file_tensor<M>([&](const file_tensor& t) {
                if (detail::file_has_moment(has.kind, t.row->tensor, moment))
                    f(std::string(detail::moment_prefixes[moment]) + t.name, t, moment + 1);
            });
        }
    }

    void save(const std::filesystem::path& path, safetensors_metadata meta, const contents& has) {
        detail::check_replaceable(path);
        std::vector<safetensors_entry> entries;
        for_each_entry(has, [&](const std::string& name, const file_tensor& t, int) {
            entries.push_back({.name = name, .dtype = "F32", .shape = detail::file_shape(t.row->tensor)});
        });
        word_digest sum;
        meta["sdepth.checksum"] = sum.hex();  // its place, before the numbers
        safetensors_writer file(path, std::move(entries), meta);
        std::vector<float> values;
        for_each_entry(has, [&](const std::string& name, const file_tensor& t, int region) {
            fetch(t, region, values);
            sum.add(std::span<const float>(values));
            file.write(name, std::span<const float>(values));
        });
        file.amend("sdepth.checksum", sum.hex());
        file.commit();
    }

    static void check(const safetensors_reader& file, const contents& has) {
        detail::check_digest<M>(file);
        std::size_t expected = 0;
        for_each_entry(has, [&](const std::string& name, const file_tensor& t, int) {
            ++expected;
            const safetensors_entry* entry = file.find(name);
            const auto shape = detail::file_shape(t.row->tensor);
            const std::string want = detail::safetensors_type("F32", shape);
            const std::string got = entry == nullptr ? "missing" : detail::safetensors_type(entry->dtype, entry->shape);
            if (got != want) {
                throw error(file.path().string() + ": tensor \"" + name + "\" is " + got + ", wanted as " + want +
                            "; load the file of this model");
            }
        });
        if (file.entries().size() != expected) {
            throw error(file.path().string() + ": has " + std::to_string(file.entries().size()) +
                        " tensors where this model has " + std::to_string(expected) + "; load the file of this model");
        }
        check_numbers(file, has);
    }

    // All are finite and, where the file has a checksum, are those that were saved.
    static void check_numbers(const safetensors_reader& file, const contents& has) {
        std::vector<float> values;
        word_digest sum;
        std::string wrong;
        for_each_entry(has, [&](const std::string& name, const file_tensor& t, int) {
            values.resize(static_cast<std::size_t>(t.elements));
            file.read(name, detail::file_shape(t.row->tensor), std::span<float>(values));
            sum.add(std::span<const float>(values));
            const bool finite = std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
            if (!finite && wrong.empty()) wrong = name;
        });
        const auto stored = file.metadata().find("sdepth.checksum");
        if (stored != file.metadata().end() && stored->second != sum.hex()) {
            throw error(file.path().string() + ": is damaged: its numbers have the checksum " + sum.hex() +
                        ", it says " + stored->second + "; fetch or save it again");
        }
        if (!wrong.empty()) {
            throw error(file.path().string() + ": tensor \"" + wrong +
                        "\" has a number that is not finite; load an earlier file");
        }
    }

    void load(const safetensors_reader& file, const contents& has) {
        std::vector<float> values;
        for_each_entry(has, [&](const std::string& name, const file_tensor& t, int region) {
            values.resize(static_cast<std::size_t>(t.elements));
            file.read(name, detail::file_shape(t.row->tensor), std::span<float>(values));
            store(t, region, values);
        });
    }

    // Of a tensor's first element in its region.
    static long long offset_of(const file_tensor& t, int region) {
        if constexpr (requires { Pipeline::run_sizes.moments; }) {  // a decoder has no moments
            if (region == 2) {
                const moment_place second = second_moments<M>(Pipeline::run_sizes.moments, *t.row);
                const long long from_first = t.offset - t.row->offset, layer = from_first / t.row->stride;
                return second.offset + layer * second.stride + from_first % t.row->stride;
            }
        }
        return t.offset;
    }
    void fetch(const file_tensor& t, int region, std::vector<float>& values) {
        const auto take = [&]<class T>(const T* from) {
            std::vector<T> stored(static_cast<std::size_t>(t.elements));
            read(pipeline_.backend(), stored.data(), from + offset_of(t, region), t.elements);
            values.assign(stored.begin(), stored.end());
        };
        const auto& memory = pipeline_.parameters();
        region == 0 ? take(memory.master) : take(region == 1 ? memory.first : memory.second);
    }
    void store(const file_tensor& t, int region, const std::vector<float>& values) {
        const auto put = [&]<class T>(T* to) {
            const std::vector<T> stored(values.begin(), values.end());
            write(pipeline_.backend(), to + offset_of(t, region), stored.data(), t.elements);
        };
        const auto& memory = pipeline_.parameters();
        if (region == 0) return memory.store(pipeline_.backend(), t.offset, values);
        put(region == 1 ? memory.first : memory.second);
    }

    Pipeline& pipeline_;
    std::vector<std::string> differences_;
};

}  // namespace sdepth::inline v0
