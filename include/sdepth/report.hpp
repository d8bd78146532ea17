// SPDX-License-Identifier: MIT
// The counts of one model as a table to read: exactly the constants of params.hpp, flops.hpp and state.hpp, each named
// by its convention. Rank 4.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "sdepth/contract.hpp"
#include "sdepth/digest.hpp"
#include "sdepth/flops.hpp"
#include "sdepth/layer_counts.hpp"
#include "sdepth/params.hpp"
#include "sdepth/state.hpp"

namespace sdepth::inline v0 {

/// 1,234,567
inline std::string grouped(long long number) {
    std::string text = std::to_string(number);
    for (std::size_t place = text.size(); place > 3; place -= 3) text.insert(place - 3, ",");
    return text;
}
/// A fraction as whole number and rest: 1,234 1/3
inline std::string grouped(ratio number) {
    std::string text = grouped(number.whole());
    if (number.rest() == 0) return text;
    return text.append(" ").append(std::to_string(number.rest())).append("/").append(std::to_string(number.den()));
}

namespace detail {

/// A layer in a few words: "sparse<8> of attention, swiglu".
template <class L>
std::string layer_words() {
    if constexpr (skips_rows<L>) {
        return std::string(L::name) + "<" + std::to_string(L::sparsity) + "> of " + layer_words<typename L::inner>();
    } else if constexpr (requires {
                             L::mixer::name;
                             L::ffn::name;
                         }) {
        if (!L::has_ffn) return std::string(L::mixer::name);
        if (!L::has_mixer) return std::string(L::ffn::name);
        return std::string(L::mixer::name).append(", ").append(L::ffn::name);
    } else {
        return std::string(L::name);
    }
}

struct kind_line {
    std::string words;
    std::string layers;
};

// What a report prints, gathered from the constants of one model, so that all models share the code below.
struct report_input {
    Run run;
    long long layers = 0;
    long long ffn_layers = 0;
    ratio active_layers;
    std::vector<kind_line> kinds;
    param_counts params;
    flop_counts flops;
    state_counts state;
    std::string digest;
};

class report_table {
  public:
    void heading(std::string_view text) { text_.append(text_.empty() ? "" : "\n").append(text).append("\n"); }
    void line(std::string_view name, std::string_view value, std::string_view value2 = {}) {
        text_.append("  ").append(name).append(name.size() < 28 ? 28 - name.size() : 1, ' ');
        text_.append(value.size() < 24 ? 24 - value.size() : 0, ' ').append(value);
        if (!value2.empty()) text_.append(value2.size() < 30 ? 30 - value2.size() : 1, ' ').append(value2);
        text_ += '\n';
    }
    void words(std::string_view name, std::string_view value) {
        text_.append("  ").append(name).append(name.size() < 36 ? 36 - name.size() : 1, ' ').append(value).append("\n");
    }
    const std::string& text() const { return text_; }

  private:
    std::string text_;
};

inline std::string report_text(const report_input& in) {
    report_table table;
    table.heading("formula");
    for (const kind_line& kind : in.kinds) table.words(kind.words, "layers " + kind.layers);
    table.line("layers", grouped(in.layers));
    table.line("with feed-forward part", grouped(in.ffn_layers));
    table.line("passed by a token", grouped(in.active_layers));
    table.line("digest", in.digest);

    table.heading("parameters");
    for (std::size_t i = 0; i < role_count; ++i) {
        if (in.params.by_role[i] != 0) table.line(name_of(static_cast<role>(i)), grouped(in.params.by_role[i]));
    }
    table.line("total, trained", grouped(in.params.total));
    table.line("state, untrained", grouped(in.params.state));
    table.line("in a file", grouped(in.params.file_elements()));
    table.line("paper, matrices alone", grouped(in.params.paper));
    table.line("active", grouped(in.params.active));

    const std::string length = grouped(in.run.seq) + " tokens";
    const std::string documents = in.run.document == 0 ? "" : ", documents of " + grouped(in.run.document);
    table.heading("FLOPs at " + length + documents + ": a token, a sequence");
    const auto flops = [&](std::string_view name, const flop_count& count) {
        table.line(name, grouped(count.per_token()), grouped(count.sequence));
    };
    flops("paper", in.flops.paper);
    flops("paper, with head", in.flops.paper_with_head);
    flops("paper, mixing alone", in.flops.paper_mixing);
    flops("forward", in.flops.forward);
    flops("useful, 3 x forward", in.flops.useful);
    flops("training, as executed", in.flops.training);

    table.heading("state of one sequence of " + length + ", bytes: keys and values bf16, recurrent f32");
    table.line("keys and values, expected", grouped(in.state.kv_expected));
    table.line("keys and values, capacity", grouped(in.state.kv_capacity));
    table.line("recurrent", grouped(in.state.recurrent));
    table.line("recurrent, conv in full", grouped(in.state.recurrent_full));
    table.line("depth slots of a position", grouped(in.state.depth_slots));
    table.line("depth bytes of a position", grouped(in.state.depth_bytes));
    return table.text();
}

template <class M>
std::vector<kind_line> kind_lines() {
    std::vector<kind_line> lines;
    [&]<class... Ls>(type_list<Ls...>) {
        (lines.push_back({layer_words<Ls>(), layers_of_kind<M>(static_cast<int>(lines.size()))}), ...);
    }(typename M::kinds{});
    return lines;
}

}  // namespace detail

/// Layers, parameters by role and convention, FLOPs by convention, and state of model M in run R, one a line.
template <class M, Run R>
std::string report() {
    if constexpr (detail::usable_in<M, R>()) {
        return detail::report_text({.run = R,
                                    .layers = M::layers,
                                    .ffn_layers = M::ffn_layers,
                                    .active_layers = active_layers<M>,
                                    .kinds = detail::kind_lines<M>(),
                                    .params = params<M>,
                                    .flops = flops<M, R>,
                                    .state = state<M, R>,
                                    .digest = digest_text(digest<M>)});
    } else {
        return {};
    }
}

}  // namespace sdepth::inline v0
