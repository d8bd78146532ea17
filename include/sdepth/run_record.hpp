// SPDX-License-Identifier: MIT
// The run record of a pipeline or decoder: what its types and its run say for themselves, and where two records differ.
// Rank 7.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "sdepth/contract.hpp"

namespace sdepth::inline v0 {

namespace detail {

/// Name of a storage type; 16 bits are bfloat16 on every backend.
template <class T>
constexpr std::string_view storage_name() {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);
    return sizeof(T) == 2 ? "bf16" : sizeof(T) == 4 ? "f32" : "f64";
}

// Calls f(heading, name, value) for each line `  name: value` of a contract's run record; no heading above the first.
template <class F>
void for_each_record(std::string_view contract, F f) {
    constexpr std::string_view start = "\nrun record\n";
    const auto found = contract.find(start);
    if (found == std::string_view::npos) return;
    std::string_view rest = contract.substr(found + start.size()), heading;
    while (!rest.empty()) {
        const auto end = std::min(rest.find('\n'), rest.size());
        const std::string_view line = rest.substr(0, end);
        rest.remove_prefix(std::min(end + 1, rest.size()));
        const auto colon = line.find(": ");
        if (line.substr(0, 2) != "  ") {
            if (!line.empty()) heading = line;
        } else if (colon != std::string_view::npos) {
            f(heading, line.substr(2, colon - 2), line.substr(colon + 2));
        }
    }
}

}  // namespace detail

/// The run record of a pipeline; of a decoder, that of its storage. The optimiser is the caller's to state.
template <class Pipeline>
constexpr run_record record_of() {
    using stored = typename Pipeline::backend_type::precision;
    run_record record{.weight_dtype = detail::storage_name<typename stored::weight>(),
                      .activation_dtype = detail::storage_name<typename stored::activation>(),
                      .document_mask = "yes",
                      .placement = "one device",
                      .collectives = "none"};
    if constexpr (requires { Pipeline::run_sizes; }) {
        record.run = Pipeline::run_sizes;
        record.master_dtype = detail::storage_name<typename stored::master>();
        record.gradient_dtype = detail::storage_name<typename stored::gradient>();
        record.moment_dtype = detail::storage_name<typename stored::sum>();
    } else {
        record.kv_dtype = detail::storage_name<typename stored::activation>();
        record.state_dtype = detail::storage_name<typename stored::sum>();
    }
    return record;
}

/// Where the run records of two contracts of one model differ, a text each; what either leaves out or does not state is
/// no difference.
inline std::vector<std::string> run_differences(std::string_view stored, std::string_view own) {
    std::vector<std::string> all;
    detail::for_each_record(own, [&](std::string_view heading, std::string_view name, std::string_view value) {
        detail::for_each_record(
            stored, [&](std::string_view its_heading, std::string_view its_name, std::string_view its_value) {
                if (heading != its_heading || name != its_name || value == its_value) return;
                if (value == run_record::unstated || its_value == run_record::unstated) return;
                std::string& text = all.emplace_back(heading);
                if (!heading.empty()) text += ": ";
                text.append(name).append(": ").append(its_value).append(" in the file, ").append(value).append(" here");
            });
    });
    return all;
}

}  // namespace sdepth::inline v0
