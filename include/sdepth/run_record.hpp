// SPDX-License-Identifier: MIT
// The run record of a pipeline or decoder: what its types and its run say for themselves. Rank 7.
#pragma once

#include <string_view>

#include "sdepth/contract.hpp"

namespace sdepth::inline v0 {

namespace detail {

/// Name of a storage type; 16 bits are bfloat16 on every backend.
template <class T>
constexpr std::string_view storage_name() {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4 || sizeof(T) == 8);
    return sizeof(T) == 2 ? "bf16" : sizeof(T) == 4 ? "f32" : "f64";
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

}  // namespace sdepth::inline v0
