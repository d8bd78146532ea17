// SPDX-License-Identifier: MIT
// What counting byte triples achieves: the loss that a trained model of bytes has to beat.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "sdepth/corpus.hpp"

/// Mean loss, in nats per byte, of an order-2 byte model trained on `training` and measured on `held_out`: the next
/// byte given the two before it, mixed with order 1, order 0 and the uniform distribution by Witten and Bell's rule
/// (Witten, Bell: The zero-frequency problem, IEEE Trans. Inf. Theory 1991, method C; no parameter to tune). A
/// document's first byte is not predicted, as in training; both corpora must be bytes.
inline double byte_baseline(const sdepth::corpus& training, const sdepth::corpus& held_out) {
    constexpr std::size_t bytes = sdepth::byte_vocabulary;
    if (training.vocabulary() != bytes || held_out.vocabulary() != bytes)
        throw sdepth::error("the order-2 byte model needs text as bytes, not tokens of " + training.tokenizer());

    // One table per order: [context, next byte], and per context the sum and the number of different next bytes.
    struct table {
        explicit table(std::size_t contexts) : count(contexts * bytes), total(contexts), different(contexts) {}
        void add(std::size_t context, std::size_t next) {
            ++total[context];
            if (count[context * bytes + next]++ == 0) ++different[context];
        }
        double mix(std::size_t context, std::size_t next, double lower) const {
            if (total[context] == 0) return lower;
            const double unseen = different[context];
            return (count[context * bytes + next] + unseen * lower) / (total[context] + unseen);
        }
        std::vector<std::uint32_t> count, total, different;
    };
    table order0(1), order1(bytes), order2(bytes * bytes);

    // Calls use(older, old, next, depth) for every byte; depth = bytes of context in its document, at most 2.
    const auto walk = [](const sdepth::corpus& text, auto use) {
        std::vector<std::int32_t> tokens(text.size());
        text.read(0, tokens);
        auto start = text.document_starts().begin();
        std::size_t depth = 0;
        for (std::size_t i = 0; i < tokens.size(); ++i) {
            if (start != text.document_starts().end() && *start == i) {
                depth = 0;
                ++start;
            }
            const auto byte = [&](std::size_t back) { return static_cast<std::size_t>(tokens[i - back]); };
            use(depth > 1 ? byte(2) : 0, depth > 0 ? byte(1) : 0, byte(0), depth);
            if (depth < 2) ++depth;
        }
    };
    walk(training, [&](std::size_t older, std::size_t old, std::size_t next, std::size_t depth) {
        order0.add(0, next);
        if (depth > 0) order1.add(old, next);
        if (depth > 1) order2.add(older * bytes + old, next);
    });
    double loss = 0;
    std::uint64_t predicted = 0;
    walk(held_out, [&](std::size_t older, std::size_t old, std::size_t next, std::size_t depth) {
        if (depth == 0) return;
        double p = order1.mix(old, next, order0.mix(0, next, 1.0 / bytes));
        if (depth > 1) p = order2.mix(older * bytes + old, next, p);
        loss -= std::log(p);
        ++predicted;
    });
    return loss / static_cast<double>(predicted);
}
