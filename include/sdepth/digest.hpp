// SPDX-License-Identifier: MIT
// The model digest: 64 bits over everything that changes the computed function or a tensor's meaning. Rank 4.
//
// It reads the fields that each layer describes, so their names and words belong to the file format: rewording a field
// is a new digest, and files with the old one are refused.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "sdepth/model.hpp"

namespace sdepth::inline v0 {

namespace detail {

/// FNV-1a, 64 bits, over bytes; a number counts as its eight bytes, lowest first.
class byte_hash {
  public:
    constexpr std::uint64_t value() const { return value_; }

    // Written out, on a copy: a call for each byte takes a compiler twice as long.
    constexpr void add(std::uint64_t word) {
        std::uint64_t v = value_;
        for (int shift = 0; shift < 64; shift += 8) v = (v ^ (word >> shift & 0xff)) * prime;
        value_ = v;
    }
    constexpr void add(std::string_view text) {
        std::uint64_t v = value_;
        const char* const letters = text.data();
        for (std::size_t i = 0, n = text.size(); i < n; ++i) v = (v ^ static_cast<unsigned char>(letters[i])) * prime;
        value_ = (v ^ 0xff) * prime;  // ends the text: no UTF-8 text holds this byte
    }

  private:
    static constexpr std::uint64_t prime = 0x100000001b3;
    std::uint64_t value_ = 0xcbf29ce484222325;
};

/// Calls f with the value of a described field as bool, long long, double or std::string_view.
template <class Value, class F>
constexpr void with_field_value(const Value& value, F&& f) {
    if constexpr (std::same_as<Value, bool>) {
        f(value);
    } else if constexpr (std::integral<Value>) {
        f(static_cast<long long>(value));
    } else if constexpr (std::floating_point<Value>) {
        f(static_cast<double>(value));
    } else {
        static_assert(std::convertible_to<Value, std::string_view>,
                      "sdepth: a described field is a number, a bool or a text: give an enumeration by its name_of");
        f(std::string_view(value));
    }
}

/// Adds the fields that change the function to a hash; passes over those of the run record.
struct digest_sink {
    byte_hash hash{};

    template <class Value>
    constexpr void function(std::string_view name, const Value& value) {
        hash.add(name);
        with_field_value(value, [this]<class V>(V v) {
            if constexpr (std::same_as<V, std::string_view>) {
                hash.add(v);
            } else if constexpr (std::same_as<V, double>) {
                hash.add(std::bit_cast<std::uint64_t>(v));
            } else {
                hash.add(static_cast<std::uint64_t>(v));
            }
        });
    }
    template <class Value>
    constexpr void record(std::string_view, const Value&) {}
};

/// Describes the part of a model outside its layers. Each layer describes the other sizes that it uses: a size that
/// none uses makes no other model.
template <class Sink>
constexpr void describe_ends(Sink& sink, const Dims& d) {
    sink.function("width", d.width);
    sink.function("vocabulary", d.vocab);
    Ends::describe(sink, d);
}

/// Of one layer kind: its name, its fields, and the names and shapes of its tensors.
template <class L>
constexpr std::uint64_t kind_digest(const Dims& d) {
    digest_sink sink;
    sink.hash.add(L::name);
    L::describe(sink, d);
    for (const tensor_row& row : L::tensors(d)) {
        sink.hash.add(row.name);
        for (const long long n : {row.rows, row.cols, row.copies, row.trained ? 1LL : 0LL}) {
            sink.hash.add(static_cast<std::uint64_t>(n));
        }
    }
    return sink.hash.value();
}

template <class... Ls>
constexpr std::array<std::uint64_t, sizeof...(Ls)> kind_digests(type_list<Ls...>, const Dims& d) {
    return {kind_digest<Ls>(d)...};
}

/// Equal layers that follow each other, with weights of their own or of equally many earlier layers. Layers from 0.
struct layer_span {
    std::uint64_t kind = 0;
    long long first = 0;
    long long weights = 0;
    long long times = 0;
};

/// Calls f for each longest span of model M, so that every spelling of one sequence of layers gives the same calls.
/// Layers are equal if `kind_of(run)` is.
template <class M, class KindOf, class F>
constexpr void for_each_span(KindOf kind_of, F f) {
    layer_span span;
    for (const layer_run& r : M::runs) {
        const std::uint64_t kind = kind_of(r);
        const long long weights = M::runs[static_cast<std::size_t>(r.weights)].first;
        if (span.times > 0 && kind == span.kind && weights == span.weights + span.times) {
            span.times += r.times;
        } else {
            if (span.times > 0) f(span);
            span = {kind, r.first, weights, r.times};
        }
    }
    if (span.times > 0) f(span);
}

template <class M>
constexpr std::uint64_t digest_of() {
    digest_sink sink;
    describe_ends(sink, M::dims);
    const auto kinds = kind_digests(typename M::kinds{}, M::dims);
    for_each_span<M>([&](const layer_run& r) { return kinds[static_cast<std::size_t>(r.kind)]; },
                     [&](const layer_span& span) {
                         sink.hash.add(span.kind);
                         sink.hash.add(static_cast<std::uint64_t>(span.weights));
                         sink.hash.add(static_cast<std::uint64_t>(span.times));
                     });
    return sink.hash.value();
}

}  // namespace detail

/// Digest of model M. Equal sequences of layers have equal digests however they are spelled; a loop differs from a
/// repeat. A file with another digest holds another model.
template <class M>
inline constexpr auto digest = detail::unless_broken<M>([]<class Good>(std::type_identity<Good>) {
    return detail::digest_of<Good>();
});

}  // namespace sdepth::inline v0
