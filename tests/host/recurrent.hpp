// SPDX-License-Identifier: MIT
// Checks that every recurrent operation passes: forms against each other, documents, dead rows, segments, slopes,
// threads, precision. A mixer is a traits type that turns numbers into its arguments.
//
//   template <class T> using args = ...                          the argument struct
//   static std::vector<field> fields()                           its inputs, in the order of `data`
//   static int outputs(), state()                                 numbers of y a row, of the state a sequence
//   static args<T> bind(data<T>&, long long begin)               pointers at row `begin`; y and state too
//   static void parallel(host&, args), step(host&, args), backward(host&, args, data<T>&)
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/catch.hpp"
#include "support/host_operations.hpp"
#include "support/samples.hpp"
#include "support/tolerance.hpp"

namespace sdepth_test {

/// An input: numbers a row, or of a weight; samples are centre + spread * normal.
struct field {
    int count = 0;
    bool weight = false;
    double centre = 0;
    double spread = 1;
};

/// Inputs, outputs and gradients of one call.
template <class T>
struct data {
    sdepth::batch_rows rows;
    const int* first = nullptr;
    int chunk = 64;
    std::vector<std::vector<T>> in, grad;
    std::vector<T> y, grad_y, state;

    template <class Mixer>
    static data of(const sdepth::batch_rows& rows, const int* first, bool with_state) {
        data d{rows, first, 64, {}, {}, {}, {}, {}};
        std::uint64_t seed = 1;
        for (const field& f : Mixer::fields()) {
            const long long n = f.weight ? f.count : rows.capacity() * f.count;
            std::vector<T> x = samples<T>(n, seed++);
            for (T& e : x) e = static_cast<T>(static_cast<float>(f.centre + f.spread * static_cast<double>(e)));
            if (!f.weight) poison_dead(x, rows, f.count);
            d.in.push_back(x);
            d.grad.push_back(f.weight ? std::vector<T>(x.size()) : poison<T>(n));
        }
        d.y = poison<T>(rows.capacity() * Mixer::outputs());
        d.grad_y = samples<T>(rows.capacity() * Mixer::outputs(), 99);
        poison_dead(d.grad_y, rows, Mixer::outputs());
        if (with_state) {
            d.state = samples<T>(static_cast<long long>(rows.batch) * Mixer::state(), 98);
            for (T& e : d.state) e = static_cast<T>(std::abs(e) / 4);
        }
        return d;
    }
    T* state_of_call() { return state.empty() ? nullptr : state.data(); }
};

/// 1e-10 of the root mean square: the gate of forms against each other, in double.
inline constexpr double forms_gate = 1e-10;

// Odd lengths, an empty sequence, three documents in the first.
inline const std::vector<int> sample_live{11, 0, 7};
inline const std::vector<int> sample_first{0,  0,  0,  0,  4,  4, 4, 4, 4, 9, 9, -1, -1, -1, -1, -1, -1,
                                           -1, -1, -1, -1, -1, 0, 0, 0, 3, 3, 3, 3,  -1, -1, -1, -1};
inline const sdepth::batch_rows sample_rows{3, {11, sample_live.data()}};

/// The parallel form with chunks of every kind of length, one longer than the sequence among them, equals the
/// recurrence.
template <class Mixer>
void forms_agree() {
    sdepth::host<double> host(2);
    for (const int* first : {static_cast<const int*>(nullptr), sample_first.data()}) {
        for (const bool with_state : {false, true}) {
            auto by_rows = data<double>::of<Mixer>(sample_rows, first, with_state);
            Mixer::step(host, Mixer::template bind<double>(by_rows, 0));
            CHECK(dead_alone_are_nan(by_rows.y, sample_rows, Mixer::outputs()));
            for (const int chunk : {1, 2, 4, 5, 11, 64}) {
                auto by_chunks = data<double>::of<Mixer>(sample_rows, first, with_state);
                by_chunks.chunk = chunk;
                Mixer::parallel(host, Mixer::template bind<double>(by_chunks, 0));
                INFO("chunk " << chunk << ", documents " << (first != nullptr) << ", state " << with_state);
                CHECK(distance(by_chunks.y, by_rows.y) <= forms_gate);
                if (with_state) CHECK(distance(by_chunks.state, by_rows.state) <= forms_gate);
            }
            if (!with_state) continue;
            // An empty sequence leaves its state as it was.
            const auto fresh = data<double>::of<Mixer>(sample_rows, first, true);
            const auto n = static_cast<std::ptrdiff_t>(Mixer::state());
            CHECK(std::equal(fresh.state.begin() + n, fresh.state.begin() + 2 * n, by_rows.state.begin() + n));
        }
    }
}

/// Feeding a sequence in segments equals feeding it at once.
template <class Mixer>
void segments_join() {
    sdepth::host<double> host(1);
    constexpr int length = 13;
    auto whole = data<double>::of<Mixer>({1, {length, nullptr}}, nullptr, true);
    Mixer::parallel(host, Mixer::template bind<double>(whole, 0));
    for (const int size : {1, 3, 6}) {
        for (const bool steps : {false, true}) {
            auto parts = data<double>::of<Mixer>({1, {length, nullptr}}, nullptr, true);
            for (int begin = 0; begin < length; begin += size) {
                parts.rows = {1, {std::min(size, length - begin), nullptr}};
                const auto args = Mixer::template bind<double>(parts, begin);
                steps ? Mixer::step(host, args) : Mixer::parallel(host, args);
            }
            INFO("segments of " << size << ", by steps " << steps);
            CHECK(distance(parts.y, whole.y) <= forms_gate);
            CHECK(distance(parts.state, whole.state) <= forms_gate);
        }
    }
}

/// Rows of a document have the outputs, bit for bit in the recurrence, that the document has alone.
template <class Mixer>
void documents_stand_alone() {
    sdepth::host<double> host(1);
    const std::vector<int> first{0, 0, 0, 3, 3, 3, 3, 3};
    auto packed = data<double>::of<Mixer>({1, {8, nullptr}}, first.data(), false);
    auto alone = data<double>::of<Mixer>({1, {8, nullptr}}, nullptr, false);
    Mixer::step(host, Mixer::template bind<double>(packed, 0));
    alone.rows = {1, {5, nullptr}};
    Mixer::step(host, Mixer::template bind<double>(alone, 3));
    const auto from = static_cast<std::ptrdiff_t>(3 * Mixer::outputs());
    CHECK(std::equal(packed.y.begin() + from, packed.y.end(), alone.y.begin() + from));
}

/// Slopes of every input, over documents and dead rows.
template <class Mixer>
void slopes_agree() {
    sdepth::host<double> host(2);
    for (const int* first : {static_cast<const int*>(nullptr), sample_first.data()}) {
        auto d = data<double>::of<Mixer>(sample_rows, first, false);
        d.chunk = 4;
        Mixer::backward(host, Mixer::template bind<double>(d, 0), d);
        const auto loss = [&] {
            Mixer::parallel(host, Mixer::template bind<double>(d, 0));
            return inner(d.y, d.grad_y);
        };
        for (std::size_t f = 0; f < d.in.size(); ++f) {
            INFO("input " << f << ", documents " << (first != nullptr));
            const field of = Mixer::fields()[f];
            if (!of.weight) CHECK(dead_alone_are_nan(d.grad[f], sample_rows, of.count));
            CHECK(gradient_defect(loss, d.in[f], d.grad[f]) <= 1e-6);
        }
    }
}

/// The same bits for every number of threads; and float near double, in both forms and backward.
template <class Mixer>
void float_is_near_and_threads_do_not_show(double terms, double roundings) {
    sdepth::host<float> one(1), three(3);
    sdepth::host<double> oracle(1);
    const auto run = [](auto& host, auto& d, bool steps) {
        using T = std::remove_cvref_t<decltype(d.y[0])>;
        const auto args = Mixer::template bind<T>(d, 0);
        steps ? Mixer::step(host, args) : Mixer::parallel(host, args);
        d.state.clear();
        Mixer::backward(host, Mixer::template bind<T>(d, 0), d);
    };
    for (const bool steps : {false, true}) {
        auto a = data<float>::of<Mixer>(sample_rows, sample_first.data(), true);
        auto b = data<float>::of<Mixer>(sample_rows, sample_first.data(), true);
        auto c = data<double>::of<Mixer>(sample_rows, sample_first.data(), true);
        run(one, a, steps), run(three, b, steps), run(oracle, c, steps);
        CHECK(same_bits(a.y, b.y));
        CHECK(distance(a.y, c.y) <= tolerance<float>(terms, roundings));
        for (std::size_t f = 0; f < a.grad.size(); ++f) {
            INFO("gradient of input " << f);
            CHECK(same_bits(a.grad[f], b.grad[f]));
            CHECK(distance(a.grad[f], c.grad[f]) <= tolerance<float>(terms, 4 * roundings));
        }
    }
}

}  // namespace sdepth_test
