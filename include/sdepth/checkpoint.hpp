// SPDX-License-Identifier: MIT
// Model and training files: safetensors of fp32 logical tensors, the same from every backend. Rank 7.
//
// A model file holds the tensors of the tensor table and can be loaded for evaluation or as a start; a training file
// also holds the optimiser's moments and where the run stands, and resumes it bit for bit.
#pragma once

#include <charconv>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sdepth/contract.hpp"
#include "sdepth/pipeline.hpp"
#include "sdepth/safetensors.hpp"

namespace sdepth::inline v0 {

/// Where a training run stands, and the settings that fix what it will do next.
struct training_state {
    long long step = 0;        ///< steps done
    long long steps = 0;       ///< of the whole run: the schedule depends on it
    std::uint64_t seed = 0;    ///< of initialisation and data order
    long long sequences = 0;   ///< of one optimiser step
    std::uint64_t tokens = 0;  ///< in the training text
    optimiser kind = optimiser::adamw;
    double rate = 0;    ///< peak learning rate
    double warmup = 0;  ///< share of the steps in which the rate rises

    friend bool operator==(const training_state&, const training_state&) = default;
};

namespace detail {

inline std::vector<std::uint64_t> file_shape(const tensor_row& row) {
    if (row.cols == 0) return {static_cast<std::uint64_t>(row.rows)};
    return {static_cast<std::uint64_t>(row.rows), static_cast<std::uint64_t>(row.cols)};
}

inline constexpr std::string_view moment_prefixes[] = {"optimizer.first.", "optimizer.second."};

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

    /// Saves the model alone. A file that was there stays whole until the new one is complete.
    void save_model(const std::filesystem::path& path) { save(path, metadata("model"), contents{}); }

    /// Saves model, optimiser and the run's place. Throws sdepth::error if the pipeline keeps too few moments for
    /// `at.kind`.
    void save_training(const std::filesystem::path& path, const training_state& at) {
        Pipeline::require_moments(at.kind);
        safetensors_metadata meta = metadata("training");
        meta["sdepth.step"] = std::to_string(at.step);
        meta["sdepth.steps"] = std::to_string(at.steps);
        meta["sdepth.seed"] = std::to_string(at.seed);
        meta["sdepth.sequences"] = std::to_string(at.sequences);
        meta["sdepth.tokens"] = std::to_string(at.tokens);
        meta["sdepth.optimiser"] = at.kind == optimiser::muon ? "muon" : "adamw";
        meta["sdepth.rate"] = detail::exact(at.rate);
        meta["sdepth.warmup"] = detail::exact(at.warmup);
        save(path, meta, {true, at.kind});
    }

    /// Loads the tensors of a model or training file. Throws sdepth::error, having changed nothing, if the file is
    /// damaged, foreign, of another model, or has a tensor missing, too many or of another shape or type.
    void load_model(const std::filesystem::path& path) {
        const safetensors_reader file(path);
        const bool training = detail::metadata_text(file, "sdepth.kind") == "training";
        check(file, training ? contents{true, kind_of(file)} : contents{});
        load(file, {});
    }

    /// Loads a training file whole.
    training_state load_training(const std::filesystem::path& path) {
        const safetensors_reader file(path);
        if (detail::metadata_text(file, "sdepth.kind") != "training") {
            throw error(path.string() + ": is a model without optimiser state; give a training file to resume");
        }
        training_state at{.step = detail::metadata_number<long long>(file, "sdepth.step"),
                          .steps = detail::metadata_number<long long>(file, "sdepth.steps"),
                          .seed = detail::metadata_number<std::uint64_t>(file, "sdepth.seed"),
                          .sequences = detail::metadata_number<long long>(file, "sdepth.sequences"),
                          .tokens = detail::metadata_number<std::uint64_t>(file, "sdepth.tokens"),
                          .rate = detail::metadata_number<double>(file, "sdepth.rate"),
                          .warmup = detail::metadata_number<double>(file, "sdepth.warmup")};
        at.kind = kind_of(file);
        Pipeline::require_moments(at.kind);
        check(file, {true, at.kind});
        pipeline_.reset_optimiser();  // the file may have fewer moments than there is memory for
        load(file, {true, at.kind});
        return at;
    }

  private:
    static safetensors_metadata metadata(const std::string& kind) {
        return {{"format", "pt"},
                {"sdepth.version", SDEPTH_VERSION_STRING},
                {"sdepth.kind", kind},
                {"sdepth.digest", digest_text(digest<M>)},
                {"sdepth.contract", contract_text<M>()}};
    }

    static optimiser kind_of(const safetensors_reader& file) {
        const std::string kind = detail::metadata_text(file, "sdepth.optimiser");
        if (kind == "adamw") return optimiser::adamw;
        if (kind == "muon") return optimiser::muon;
        throw error(file.path().string() + ": names the optimiser \"" + kind + "\"; this program knows adamw and muon");
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

    void save(const std::filesystem::path& path, const safetensors_metadata& meta, const contents& has) {
        std::vector<safetensors_entry> entries;
        for_each_entry(has, [&](const std::string& name, const file_tensor& t, int) {
            entries.push_back({.name = name, .dtype = "F32", .shape = detail::file_shape(t.row->tensor)});
        });
        safetensors_writer file(path, std::move(entries), meta);
        std::vector<float> values;
        for_each_entry(has, [&](const std::string& name, const file_tensor& t, int region) {
            fetch(t, region, values);
            file.write(name, std::span<const float>(values));
        });
        file.commit();
    }

    void check(const safetensors_reader& file, const contents& has) const {
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
        if (region < 2) return t.offset;
        const moment_place second = second_moments<M>(Pipeline::run_sizes.moments, *t.row);
        const long long from_first = t.offset - t.row->offset, layer = from_first / t.row->stride;
        return second.offset + layer * second.stride + from_first % t.row->stride;
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
};

}  // namespace sdepth::inline v0
