// SPDX-License-Identifier: MIT
// Sparse upcycling: an expert model that starts from a trained dense one (Komatsuzaki et al. 2023). Rank 6.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "sdepth/error.hpp"
#include "sdepth/passes/view.hpp"
#include "sdepth/tensor_table.hpp"

namespace sdepth::inline v0 {

/// Starts model `to` from the weights of `from`: every routed expert becomes a copy of the dense feed-forward part of
/// its layer, every other tensor is copied by name, routers get the first values of `seed`, the optimiser starts anew.
/// With renormalised weights of scale 1 and no limit, the first forward is that of the dense model. Throws
/// sdepth::error, before it changes anything, where a tensor has no source of its shape.
/// @param from, to  pipelines of the two models; their backends may differ
template <class From, class To>
void upcycle(From& from, To& to, std::uint64_t seed) {
    std::map<std::string, file_tensor> sources;
    for_each_file_tensor<typename From::model>([&](const file_tensor& t) { sources.emplace(t.name, t); });
    const auto source_of = [&](const file_tensor& t) {
        constexpr std::string_view mark = "mlp.experts.";
        std::string name = t.name;
        if (const auto at = name.find(mark); at != std::string::npos) {
            const auto end = name.find('.', at + mark.size());
            name.replace(at, end - at, "mlp");
        }
        return sources.find(name);
    };
    const auto is_router = [](const file_tensor& t) {
        return t.row->tensor.use == role::expert_router || t.row->tensor.use == role::expert_bias;
    };
    for_each_file_tensor<typename To::model>([&](const file_tensor& t) {
        if (is_router(t)) return;
        const auto source = source_of(t);
        if (source == sources.end()) {
            throw error("upcycle: tensor \"" + t.name +
                        "\" has no source in the dense model; give both the same layers");
        }
        const tensor_row& have = source->second.row->tensor;
        const tensor_row& want = t.row->tensor;
        if (have.rows != want.rows || have.cols != want.cols) {
            throw error("upcycle: tensor \"" + t.name + "\" is " + std::to_string(want.rows) + " x " +
                        std::to_string(want.cols) + ", its source \"" + source->first + "\" " +
                        std::to_string(have.rows) + " x " + std::to_string(have.cols) +
                        "; set Dims::expert_ffn to the dense model's ffn");
        }
    });

    to.initialise(seed);
    std::vector<typename From::backend_type::precision::master> values;
    for_each_file_tensor<typename To::model>([&](const file_tensor& t) {
        if (is_router(t)) return;
        values.resize(static_cast<std::size_t>(t.elements));
        read(from.backend(), values.data(), from.parameters().master + source_of(t)->second.offset, t.elements);
        to.parameters().store(to.backend(), t.offset, values);
    });
}

}  // namespace sdepth::inline v0
