// SPDX-License-Identifier: MIT
// Bad arguments of the attention kernels end in one clear error before anything starts. No GPU is needed to see it.
#include "sdepth/kernels/cuda/attention_checks.hpp"

#include <cmath>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sdepth/precision.hpp"
#include "support/catch.hpp"

namespace {

namespace checks = sdepth::on_cuda::detail;
using T = float;
alignas(16) float memory[8];
T* const good = memory;
T* const odd = memory + 1;

sdepth::AttentionBackwardArgs<T> attention() {
    sdepth::AttentionBackwardArgs<T> g;
    auto& a = g.forward;
    a.heads = 4, a.kv_heads = 2, a.queries.capacity = a.keys.capacity = 8;
    a.q = a.k = a.v = good, a.o = a.lse = good;
    g.grad_o = good, g.grad_q = g.grad_k = g.grad_v = good;
    return g;
}
sdepth::DepthAttentionBackwardArgs<T> depth() {
    sdepth::DepthAttentionBackwardArgs<T> g;
    auto& a = g.forward;
    a.heads = 4, a.kv_heads = 2, a.tokens.capacity = 8, a.slots = a.used = 3;
    a.q = a.slot = good, a.o = a.lse = good;
    g.grad_o = good, g.grad_q = g.grad_slot = good;
    return g;
}
sdepth::DepthSlotGradientArgs<T> gradients() {
    sdepth::DepthSlotGradientArgs<T> g;
    g.heads = 4, g.kv_heads = 2, g.tokens.capacity = 8, g.slots = g.end = 3, g.readers = 1;
    g.reads[0] = {good, good, good, good}, g.grad_slot = good;
    return g;
}

// Each spoiled in one way; the error begins with the operation and says the words.
template <class Args>
void refuses(const Args& fine, const std::function<void(const Args&)>& check,
             const std::vector<std::pair<std::function<void(Args&)>, std::string>>& cases) {
    CHECK_NOTHROW(check(fine));
    for (const auto& [spoil, words] : cases) {
        Args bad = fine;
        spoil(bad);
        std::string said;
        try {
            check(bad);
        } catch (const sdepth::error& e) {
            said = e.what();
        }
        INFO("wanted: " << words << ", said: " << said);
        CHECK(said.find("the_op: ") != std::string::npos);
        CHECK(said.find(words) != std::string::npos);
    }
}

}  // namespace

TEST_CASE("attention refuses bad arguments", "[attention]") {
    using Args = sdepth::AttentionBackwardArgs<T>;
    refuses<Args>(attention(), [](const Args& g) { checks::check_backward(g, good, "the_op"); },
                  {
                      {[](Args& g) { g.forward.q = nullptr; }, "q is null"},
                      {[](Args& g) { g.forward.k = odd; }, "k is not 16-byte aligned"},
                      {[](Args& g) { g.forward.v = nullptr; }, "v is null"},
                      {[](Args& g) { g.forward.o = odd; }, "o is not 16-byte aligned"},
                      {[](Args& g) { g.forward.lse = nullptr; }, "lse is null"},
                      {[](Args& g) { g.grad_o = nullptr; }, "grad_o is null"},
                      {[](Args& g) { g.grad_k = odd; }, "grad_k is not 16-byte aligned"},
                      {[](Args& g) { g.grad_v = nullptr; }, "grad_v is null"},
                      {[](Args& g) { g.forward.head_dim = 96; }, "head_dim 96 has no kernel"},
                      {[](Args& g) { g.forward.heads = 0; }, "heads must be a multiple of kv_heads"},
                      {[](Args& g) { g.forward.heads = -2; }, "heads must be a multiple of kv_heads"},
                      {[](Args& g) { g.forward.kv_heads = 3; }, "heads must be a multiple of kv_heads"},
                      {[](Args& g) { g.forward.scale = 0; }, "scale must be positive"},
                      {[](Args& g) { g.forward.scale = std::nan(""); }, "scale must be positive"},
                      {[](Args& g) { g.forward.window = -1; }, "window is negative"},
                      {[](Args& g) { g.forward.window = 4, g.forward.causal = false; }, "window needs plain causal"},
                      {[](Args& g) { g.forward.q_row = 4 * 64 - 8; }, "q_row is 248; use 0"},
                      {[](Args& g) { g.forward.q_row = 4 * 64 + 4; }, "q_row is 260; use 0"},
                      {[](Args& g) { g.forward.kv_row = 2 * 64 - 8; }, "kv_row is 120; use 0"},
                      {[](Args& g) { g.forward.keys.capacity = 0; }, "no rows"},
                  });
    CHECK_THROWS_AS(checks::check_backward(attention(), odd, "the_op"), sdepth::error);
}

TEST_CASE("attention backward through the preparation of queries refuses bad arguments", "[attention]") {
    using Args = sdepth::QkPrepareBackwardArgs<sdepth::uniform_precision<T>>;
    Args fine;
    fine.forward.rows = {1, {8}}, fine.forward.heads = 4, fine.forward.head_dim = 64;
    fine.forward.x = fine.forward.weight = good, fine.forward.rstd = good;
    fine.grad_x = good, fine.grad_weight = good;
    static const int live = 3;
    refuses<Args>(fine, [](const Args& g) { checks::check_prepared(attention().forward, g, "the_op"); },
                  {
                      {[](Args& g) { g.forward.norm = sdepth::qk_norm::full_width; }, "norm of full width"},
                      {[](Args& g) { g.forward.heads = 2; }, "other sizes"},
                      {[](Args& g) { g.forward.head_dim = 128; }, "other sizes"},
                      {[](Args& g) { g.forward.rows.batch = 2; }, "other sizes"},
                      {[](Args& g) { g.forward.rows.each.live = &live; }, "other sizes"},
                      {[](Args& g) { g.grad_x = odd; }, "grad_x is not 16-byte aligned"},
                      {[](Args& g) { g.forward.x = nullptr; }, "x is null"},
                      {[](Args& g) { g.forward.rstd = nullptr; }, "rstd or grad_weight"},
                  });
    auto apart = attention().forward;
    apart.q_row = 5 * 64;
    CHECK_THROWS_AS(checks::check_prepared(apart, fine, "the_op"), sdepth::error);
}

TEST_CASE("depth attention refuses bad arguments", "[attention]") {
    using Args = sdepth::DepthAttentionBackwardArgs<T>;
    static const int id = 0;
    refuses<Args>(depth(), [](const Args& g) { checks::check_depth_backward(g, "the_op"); },
                  {
                      {[](Args& g) { g.forward.q = odd; }, "q is not 16-byte aligned"},
                      {[](Args& g) { g.forward.slot = nullptr; }, "slot is null"},
                      {[](Args& g) { g.forward.lse = nullptr; }, "lse is null"},
                      {[](Args& g) { g.forward.heads = 34; }, "17 query heads"},
                      {[](Args& g) { g.forward.used = 4; }, "used must lie between"},
                      {[](Args& g) { g.forward.ids = &id; }, "ids without sequence"},
                      {[](Args& g) { g.forward.ids = &id, g.forward.sequence = 8; }, "grad_slot overwrites"},
                      {[](Args& g) { g.forward.batch = 0; }, "no tokens"},
                      {[](Args& g) { g.forward.q_row = 8; }, "q_row is 8"},
                      {[](Args& g) { g.forward.scale = -1; }, "scale must be positive"},
                      {[](Args& g) { g.p = good; }, "p and ds must both"},
                      {[](Args& g) { g.slot_sum = odd; }, "slot_sum is not 16-byte aligned"},
                      {[](Args& g) { g.grad_q = nullptr; }, "grad_q is null"},
                      {[](Args& g) { g.grad_slot = odd; }, "grad_slot is not 16-byte aligned"},
                  });
    Args none = depth();
    none.forward.used = 0, none.forward.slot = nullptr, none.forward.o = nullptr;
    CHECK_NOTHROW(checks::check_depth_backward(none, "the_op"));
}

TEST_CASE("gradients of slots refuse bad arguments", "[attention]") {
    using Args = sdepth::DepthSlotGradientArgs<T>;
    refuses<Args>(gradients(), [](const Args& g) { checks::check_slot_gradients(g, "the_op"); },
                  {
                      {[](Args& g) { g.readers = 65; }, "most_readers"},
                      {[](Args& g) { g.begin = 2, g.end = 1; }, "begin and end"},
                      {[](Args& g) { g.end = 4; }, "begin and end"},
                      {[](Args& g) { g.kv_heads = 3; }, "heads must be a multiple"},
                      {[](Args& g) { g.reads[0].p = nullptr; }, "p or ds is null"},
                      {[](Args& g) { g.reads[0].q = odd; }, "q is not 16-byte aligned"},
                      {[](Args& g) { g.grad_slot = nullptr; }, "grad_slot is null"},
                      {[](Args& g) { g.tokens.capacity = 0; }, "no tokens"},
                  });
}
