// SPDX-License-Identifier: MIT
// What a layer is: the members that every layer has, ours and a user's, and the rows of its tensors. Rank 1.
//
//   static constexpr std::string_view name              word for reports and the contract
//   static constexpr bool has_mixer, has_ffn            an anchor has both and is not sparse
//   static constexpr bool causal                        false: its training-time routing sees the future
//   static constexpr tensor_rows tensors(const Dims&)   every tensor of one layer
//   static constexpr mixing_work mixing(const Dims&)    arithmetic that no tensor row accounts for
//   static constexpr state_size state(const Dims&)      what decoding keeps
//   static constexpr verdict check(const Dims&)         first broken rule of its own
//   static constexpr void describe(Sink&, const Dims&)  every policy and size that it uses, and no other, for digest
//   and
//                                                       contract
//
// Optional:
//
//   using inner                                         the layer that it wraps
//   static constexpr bool waits_for_anchor              its routing keeps a bias that only an anchor clears
//   static constexpr bool chooses_by_document           its routing chooses among the rows of a document
//   static constexpr long long width(const Dims&)       width of its rows, where it may differ from Dims::width
//
// Derive from `layer_base`. A mixer for `layer<Mixer, Ffn>` has the same members but has_mixer and has_ffn; a
// feed-forward part also leaves out mixing and state. Counts, tensor table, plan, checkpoint names, digest and contract
// all follow from these.
#pragma once

#include <concepts>
#include <cstddef>
#include <initializer_list>
#include <string_view>
#include <type_traits>

#include "sdepth/dims.hpp"
#include "sdepth/numbers.hpp"
#include "sdepth/pattern.hpp"
#include "sdepth/verdict.hpp"

namespace sdepth::inline v0 {

/// What a tensor is for; decides which named counts include it.
enum class role {
    embedding,
    head,
    norm,
    query,
    key,
    value,
    output,
    input,  ///< projections into a recurrent mixer
    gate,   ///< of a feed-forward part, like `up` and `down`
    up,
    down,
    depth_key,
    depth_value,
    conv,
    recurrence,
    router,         ///< router vector of a sparse layer
    scale,          ///< learned residual scale of a sparse layer
    cut,            ///< tracked cut of a sparse layer, untrained
    expert_router,  ///< router matrix of an expert layer
    expert_bias,    ///< selection bias per expert, untrained
    bias,
};

inline constexpr std::size_t role_count = static_cast<std::size_t>(role::bias) + 1;

constexpr std::string_view name_of(role use) {
    constexpr std::string_view names[role_count] = {
        "embedding",   "head",   "norm",  "query", "key",           "value",       "output",
        "mixer input", "gate",   "up",    "down",  "depth key",     "depth value", "convolution",
        "recurrence",  "router", "scale", "cut",   "expert router", "expert bias", "bias"};
    return names[static_cast<std::size_t>(use)];
}

/// How a tensor starts. Random starts are keyed by (seed, tensor, element), so they depend on no placement.
enum class init_kind {
    zeros,
    ones,
    normal,        ///< N(0, value)
    constant,      ///< value
    uniform,       ///< U(-value, value)
    log_counting,  ///< log(1 + column): the S4D-real transition, A = -1, -2, ...
    log_uniform,   ///< log U(1, value): one transition a head
    step_bias,     ///< inverse softplus of log-uniform steps in [value, 100 value]
    log_step,      ///< log of log-uniform steps in [value, 100 value]
};

struct initial {
    init_kind kind = init_kind::normal;
    double value = 0.02;
};

/// Which rows of a sequence pass through a tensor.
enum class row_scope {
    own,  ///< the rows that the layer executes
    all,  ///< every row, also those that a sparse layer skips
    none  ///< not part of a matrix product
};

/// Which optimiser updates a tensor when Muon is chosen: matrices of hidden layers are Muon's, all else AdamW's.
enum class update_group { muon, adamw };

/// How a tensor is split over devices; files stay unsharded.
enum class sharding { replicated, by_expert };

/// One tensor of one layer (or `copies` equal ones), as the file knows it.
struct tensor_row {
    std::string_view name;  ///< below the layer's prefix; `{e}` stands for the number of the copy
    role use = role::bias;
    long long rows = 0;  ///< outputs of a matrix, length of a vector
    long long cols = 0;  ///< inputs of a matrix; 0 = a vector
    initial start{};
    row_scope scope = row_scope::none;
    bool trained = true;
    bool decays = false;
    double rate = 1;  ///< share of the learning rate that AdamW takes here
    update_group group = update_group::adamw;
    long long copies = 1;
    ratio active = 1;  ///< share of the tensor that one token's pass uses
    sharding split = sharding::replicated;
    long long parts[5] = {};  ///< rows of the logical matrices stored one below the other; 0s: it is one matrix

    /// Calls f(first row, rows) for each logical matrix of one copy, which Muon updates by itself.
    template <class F>
    constexpr void for_each_part(F f) const {
        if (parts[0] == 0) return f(0LL, rows);
        long long first = 0;
        for (const long long part : parts) {
            if (part < 1) break;
            f(first, part);
            first += part;
        }
    }
    constexpr count elements() const { return count(copies) * count(rows) * count(cols == 0 ? 1 : cols); }
};

/// A weight matrix of a hidden layer: part of a product, decayed, Muon's.
constexpr tensor_row matrix(std::string_view name, role use, long long outputs, long long inputs) {
    return {.name = name,
            .use = use,
            .rows = outputs,
            .cols = inputs,
            .scope = row_scope::own,
            .decays = true,
            .group = update_group::muon};
}

/// Weight matrices with the same inputs, stored as one tensor, one below the other. At most five.
/// @param outputs  of each
constexpr tensor_row stacked(std::string_view name, role use, std::initializer_list<long long> outputs,
                             long long inputs) {
    tensor_row row = matrix(name, use, 0, inputs);
    int part = 0;
    for (const long long rows : outputs) {
        row.parts[part++] = rows;
        row.rows += rows;
    }
    for (const long long rows : outputs)
        if (rows < 1) row.rows = rows;  // so that the check of sizes sees it
    return row;
}

/// A vector outside matrix products: norms, biases, scales.
constexpr tensor_row vector(std::string_view name, role use, long long length, initial start) {
    return {.name = name, .use = use, .rows = length, .start = start};
}

/// Tensor rows of one layer, in file order.
struct tensor_rows {
    static constexpr int capacity = 32;
    tensor_row items[capacity]{};
    int size = 0;  // what was added; beyond the capacity nothing is kept, and `rule::tensor_rows_fit` refuses the layer

    constexpr void add(const tensor_row& row) {
        if (size < capacity) items[size] = row;
        ++size;
    }
    constexpr void add(const tensor_rows& rows) {
        for (const tensor_row& row : rows) add(row);
        size += rows.size - rows.kept();
    }
    constexpr int kept() const { return size < capacity ? size : capacity; }
    constexpr const tensor_row* begin() const { return items; }
    constexpr const tensor_row* end() const { return items + kept(); }
    constexpr tensor_row* begin() { return items; }
    constexpr tensor_row* end() { return items + kept(); }
};

/// Arithmetic of a mixer beyond the products with its weights, in multiply-adds of matrix products.
struct mixing_work {
    long long per_pair = 0;  ///< for each visible (query, key) pair
    long long per_row = 0;   ///< for each executed row: state updates and read-outs
    long long per_slot = 0;  ///< for each executed row and readable depth slot
    long long window = 0;    ///< keys that a query sees at most, its own included, in original positions; 0 = all
    bool full_keys = false;  ///< keys of every row, not only of the executed ones
    long long slots_read_at_most = 0;  ///< bound on the readable slots; 0 = all that were written
};

/// What decoding keeps for one sequence, in elements.
struct state_size {
    long long kv_row = 0;         ///< keys and values of one executed row
    long long recurrent = 0;      ///< recurrent state, whatever the length
    long long conv_channels = 0;  ///< channels of a short convolution, which needs its last conv_width - 1 inputs
    long long conv_width = 1;
    long long slots_written = 0;  ///< depth slots that one executed row writes
    long long slot = 0;           ///< keys and values of one depth slot
};

namespace detail {

// The same value, computed anew. nvcc 13 misprints a class-type argument that reaches a type through the parameter of a
// variable or function template; an evaluated one it prints as a literal.
template <class Policy>
constexpr Policy evaluated(Policy p) {
    return p;
}

/// Base of sparse depth, by which counts know it: a layer of a user's may have members of the same names.
struct sparse_base : layer_base {};
template <class L>
concept skips_rows = std::derived_from<L, sparse_base>;

// Whether a layer that others are made of says so. False where it says nothing, or nothing constant: the model that it
// stands in reports that, so the class made of it must not.
template <class L>
concept says_mixer = requires {
    typename std::enable_if_t<bool(L::has_mixer)>;
};
template <class L>
concept says_ffn = requires {
    typename std::enable_if_t<bool(L::has_ffn)>;
};
template <class L>
concept says_causal = requires {
    typename std::enable_if_t<bool(L::causal)>;
};

// A sink that accepts any field, to ask whether a layer can describe itself.
struct null_sink {
    template <class Value>
    constexpr void function(std::string_view, const Value&) {}
    template <class Value>
    constexpr void record(std::string_view, const Value&) {}
};

/// Names a member of a layer, in `rule::lacks_member` and `rule::member_is_constant`.
enum class layer_member {
    none,
    name,
    has_mixer,
    has_ffn,
    causal,
    tensors,
    mixing,
    state,
    mixing_and_state,  // of a type in the place of a mixer: it is a feed-forward part, hence `rule::parts_fit`
    check,
    describe,
    layer_base,  // not a member, but the base that brings the rest
    waits_for_anchor,
    chooses_by_document,
    width
};

/// A type and the member that it lacks.
template <class T, layer_member Member>
struct lack {
    using type = T;
    static constexpr layer_member member = Member;
};

/// What a layer is made of: layers and parts.
enum class component_kind { layer, mixer, ffn };
template <class T, component_kind Kind>
struct component {};

/// Components in the order in which faults are looked for.
template <class... Components>
struct made_of {};

template <class... As, class... Bs>
constexpr made_of<As..., Bs...> operator+(made_of<As...>, made_of<Bs...>) {
    return {};
}

/// What layer L is made of: the layer that it wraps or its two parts first, itself last.
template <class L>
constexpr auto components_of() {
    constexpr made_of<component<L, component_kind::layer>> itself;
    if constexpr (requires { typename L::inner; }) {
        return components_of<typename L::inner>() + itself;
    } else if constexpr (requires {
                             typename L::mixer;
                             typename L::ffn;
                         }) {
        return made_of<component<typename L::mixer, component_kind::mixer>,
                       component<typename L::ffn, component_kind::ffn>>{} +
               itself;
    } else {
        return itself;
    }
}

/// The fault, a `lack`, that `find` sees first. No component is asked behind it.
template <class Find, class Component, class... Rest>
constexpr auto first_fault(Find find, made_of<Component, Rest...>) {
    constexpr auto found = Find{}(Component{});
    if constexpr (found.member != layer_member::none || sizeof...(Rest) == 0) {
        return found;
    } else {
        return first_fault(find, made_of<Rest...>{});
    }
}

template <class Member>
concept flag = std::same_as<bool, std::remove_cvref_t<Member>>;

template <class T>
concept gives_mixing = requires(const Dims d) {
    { T::mixing(d) } -> std::same_as<mixing_work>;
};
template <class T>
concept gives_state = requires(const Dims d) {
    { T::state(d) } -> std::same_as<state_size>;
};
/// A member `mixing` or `state`, of whatever type: a mixer, complete or not.
template <class T>
concept names_mixing = requires(const Dims d) {
    T::mixing(d);
}
|| requires(const Dims d) { T::state(d); };
/// A member `width`, of whatever type.
template <class T>
concept names_width = requires {
    &T::width;
}
|| requires(const Dims d) { T::width(d); };

/// Finds the first member that a component lacks.
struct find_lack {
    template <class T, component_kind kind>
    constexpr auto operator()(component<T, kind>) const {
        using enum layer_member;
        constexpr bool is_layer = kind == component_kind::layer;
        if constexpr (!requires { std::string_view(T::name); }) {
            return lack<T, name>{};
        } else if constexpr (is_layer && !requires {
                                 { T::has_mixer } -> flag;
                             }) {
            return lack<T, has_mixer>{};
        } else if constexpr (is_layer && !requires {
                                 { T::has_ffn } -> flag;
                             }) {
            return lack<T, has_ffn>{};
        } else if constexpr (!requires {
                                 { T::causal } -> flag;
                             }) {
            return lack<T, causal>{};
        } else if constexpr (!requires(const Dims d) {
                                 { T::tensors(d) } -> std::same_as<tensor_rows>;
                             }) {
            return lack<T, tensors>{};
        } else if constexpr (kind == component_kind::mixer && !names_mixing<T>) {
            return lack<T, mixing_and_state>{};
        } else if constexpr (kind != component_kind::ffn && !gives_mixing<T>) {
            return lack<T, mixing>{};
        } else if constexpr (kind != component_kind::ffn && !gives_state<T>) {
            return lack<T, state>{};
        } else if constexpr (!requires(const Dims d) {
                                 { T::check(d) } -> std::same_as<verdict>;
                             }) {
            return lack<T, check>{};
        } else if constexpr (!requires(null_sink sink, const Dims d) { T::describe(sink, d); }) {
            return lack<T, describe>{};
        } else if constexpr (is_layer && !std::derived_from<T, sdepth::layer_base>) {
            return lack<T, layer_member::layer_base>{};
        } else if constexpr (is_layer && !requires {
                                 { T::waits_for_anchor } -> flag;
                             }) {
            return lack<T, waits_for_anchor>{};
        } else if constexpr (is_layer && !requires {
                                 { T::chooses_by_document } -> flag;
                             }) {
            return lack<T, chooses_by_document>{};
        } else if constexpr (is_layer && names_width<T> && !requires(const Dims d) {
                                 { T::width(d) } -> std::same_as<long long>;
                             }) {
            return lack<T, width>{};
        } else {
            return lack<T, none>{};
        }
    }
};

template <class L>
using lack_of = decltype(first_fault(find_lack{}, components_of<L>()));

}  // namespace detail

/// A type that can stand in a formula and be counted.
template <class L>
concept Layer = detail::lack_of<L>::member == detail::layer_member::none;

}  // namespace sdepth::inline v0
