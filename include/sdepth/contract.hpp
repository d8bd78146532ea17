// SPDX-License-Identifier: MIT
// The architecture contract: a text, generated from the type, of everything that a model's name leaves open.
// Its model part is what the digest covers; its run record is stored beside it and may differ. Host only. Rank 4.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

#include "sdepth/digest.hpp"
#include "sdepth/params.hpp"

namespace sdepth::inline v0 {

/// What one use of a model adds to its contract. Whoever runs the model fills it in; nothing is guessed.
struct run_record {
    static constexpr std::string_view unstated = "not stated";

    Run run{};                                     ///< its lines are not stated if it has no sequence length
    std::string_view weight_dtype = unstated;      ///< storage of the weights
    std::string_view master_dtype = unstated;      ///< the copy that the optimiser updates
    std::string_view gradient_dtype = unstated;    ///< storage of gradients
    std::string_view moment_dtype = unstated;      ///< optimiser state
    std::string_view activation_dtype = unstated;  ///< saved activations
    std::string_view kv_dtype = unstated;          ///< keys, values and depth slots in decoding
    std::string_view state_dtype = unstated;       ///< recurrent and convolution state
    std::string_view document_mask = unstated;     ///< whether attention and state stop at document boundaries
    std::string_view placement = unstated;         ///< which device holds which weights, experts above all
    std::string_view collectives = unstated;       ///< operations between devices
    std::string_view optimiser = unstated;         ///< rule and hyper-parameters
};

/// A digest as files and tables write it: 16 hexadecimal digits.
inline std::string digest_text(std::uint64_t digest) {
    std::string text(16, '0');
    for (std::size_t i = 0; i < 16; ++i) text[15 - i] = "0123456789abcdef"[digest >> (4 * i) & 15];
    return text;
}

namespace detail {

inline void append_value(std::string& out, bool value) { out += value ? "yes" : "no"; }
inline void append_value(std::string& out, long long value) { out += std::to_string(value); }
inline void append_value(std::string& out, std::string_view value) { out += value; }
inline void append_value(std::string& out, double value) {
    char digits[32];
    out.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);  // shortest that reads back the same
}
inline void append_value(std::string& out, ratio value) {
    append_value(out, value.whole());
    if (value.rest() == 0) return;
    append_value(out += ' ', value.rest());
    append_value(out += '/', value.den());
}

/// Collects described fields as lines `name: value`, those of the model apart from those of the run record.
class text_sink {
  public:
    template <class Value>
    void function(std::string_view name, const Value& value) {
        line(model_, name, value);
    }
    template <class Value>
    void record(std::string_view name, const Value& value) {
        line(record_, name, value);
    }
    const std::string& model() const { return model_; }
    const std::string& record() const { return record_; }

  private:
    template <class Value>
    static void line(std::string& out, std::string_view name, const Value& value) {
        out.append("  ").append(name).append(": ");
        with_field_value(value, [&out](auto v) { append_value(out, v); });
        out += '\n';
    }

    std::string model_;
    std::string record_;
};

/// "5-28", layers counted from 1.
inline std::string layer_range(long long first, long long times) {
    std::string text = std::to_string(first + 1);
    if (times > 1) text += '-' + std::to_string(first + times);
    return text;
}

/// The layers of one kind: "1-4, 29, 62".
template <class M>
std::string layers_of_kind(int kind) {
    std::string text;
    long long first = 0;
    long long times = 0;
    const auto flush = [&] {
        if (times > 0) text.append(text.empty() ? "" : ", ").append(layer_range(first, times));
    };
    for (const layer_run& r : M::runs) {
        if (r.kind != kind) continue;
        if (times == 0 || r.first != first + times) {
            flush();
            first = r.first;
            times = 0;
        }
        times += r.times;
    }
    flush();
    return text;
}

/// The tensors of one layer and what its decoding keeps.
template <class L>
void append_tensors(text_sink& sink, const Dims& d) {
    for (const tensor_row& row : L::tensors(d)) {
        std::string shape = std::to_string(row.rows);
        if (row.cols != 0) shape += " x " + std::to_string(row.cols);
        if (row.copies != 1) shape.insert(0, std::to_string(row.copies) + " of ");
        if (!row.trained) shape += ", untrained";
        sink.function("tensor " + std::string(row.name), shape);
    }
    const state_size state = L::state(d);
    if (state.kv_row > 0) sink.function("keys and values of a row, elements", state.kv_row);
    if (state.recurrent > 0) sink.function("recurrent state, elements", state.recurrent);
    if (state.conv_channels > 0) sink.function("convolution channels", state.conv_channels);
    if (state.slots_written > 0) {
        sink.function("depth slots written by a row", state.slots_written);
        sink.function("depth slot, elements", state.slot);
    }
}

inline void append_run(std::string& text, const run_record& r) {
    text_sink sink;
    const auto of_run = [&](std::string_view name, const auto& value) {
        r.run.seq == 0 ? sink.record(name, run_record::unstated) : sink.record(name, value);
    };
    of_run("sequence length", r.run.seq);
    of_run("sequences of a micro-batch", r.run.batch);
    of_run("micro-batches of a step", r.run.accumulate);
    of_run("mean document length, 0 = the sequence", r.run.document);
    of_run("documents of a sequence at most", r.run.max_documents);
    sink.record("document mask", r.document_mask);
    of_run("devices", r.run.ranks);
    constexpr std::string_view replayed[] = {"nothing", "hidden rows of feed-forward parts", "every layer"};
    of_run("recomputed in the backward pass", replayed[static_cast<int>(r.run.replay)]);
    sink.record("weights", r.weight_dtype);
    sink.record("master weights", r.master_dtype);
    sink.record("gradients", r.gradient_dtype);
    sink.record("optimiser moments", r.moment_dtype);
    sink.record("activations", r.activation_dtype);
    sink.record("keys and values", r.kv_dtype);
    sink.record("recurrent state", r.state_dtype);
    sink.record("placement", r.placement);
    sink.record("collectives", r.collectives);
    sink.record("optimiser", r.optimiser);
    text += sink.record();
}

template <class M>
void append_counts(std::string& text) {
    constexpr param_counts counts = params<M>;
    text += "  total parameters, every trained number: ";
    append_value(text, counts.total);
    text += "\n  active parameters, sparse layers x 1/K but for router and scale, routed experts x k/E: ";
    append_value(text, counts.active);
    text += "\n  untrained numbers kept with the weights: ";
    append_value(text, counts.state);
    text += '\n';
}

template <class M>
std::string contract_of(const run_record& record) {
    std::string text = "sdepth contract\ndigest: " + digest_text(digest<M>) + "\n\nmodel\n";
    std::string records = "\nrun record\n";
    append_run(records, record);
    append_counts<M>(records);

    text_sink ends;
    describe_ends(ends, M::dims);
    ends.function("layers", M::layers);
    text += ends.model();
    for_each_span<M>([](const layer_run&) { return std::uint64_t{0}; },
                     [&text](const layer_span& span) {
                         if (span.weights == span.first) return;
                         text += "  layers " + layer_range(span.first, span.times) + " have the weights of: layers " +
                                 layer_range(span.weights, span.times) + '\n';
                     });

    for (int kind = 0; kind < M::kinds::size; ++kind) {
        visit_type(typename M::kinds{}, kind, [&]<class L>(std::type_identity<L>) {
            text_sink sink;
            L::describe(sink, M::dims);
            append_tensors<L>(sink, M::dims);
            const std::string heading = "\nlayers " + layers_of_kind<M>(kind) + ": ";
            text.append(heading).append(L::name).append("\n").append(sink.model());
            if (!sink.record().empty()) records.append(heading).append(L::name).append("\n").append(sink.record());
        });
    }
    return text + records;
}

}  // namespace detail

/// The contract of model M: `model`, which the digest covers, and `run record`, which may differ between two uses.
/// Lines `name: value` below headings; equal sequences of layers give equal model parts however they are spelled.
template <class M>
std::string contract_text(const run_record& record = {}) {
    if constexpr (detail::countable<M>()) {
        return detail::contract_of<M>(record);
    } else {
        return {};
    }
}

}  // namespace sdepth::inline v0
