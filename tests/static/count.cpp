// SPDX-License-Identifier: MIT
// FLOPs and state of small models, counted by hand: every convention and every special case.
#include <algorithm>

#include "printed.hpp"

namespace {

using namespace sdepth;
using namespace sdepth::literals;
using namespace sdepth_test;

constexpr Dims d{.width = 64, .head_dim = 16, .heads = 4, .kv_heads = 2, .ffn = 128, .expert_ffn = 32, .vocab = 256};

template <Run R, pattern P>
constexpr flop_counts of(P) {
    return flops<Model<P{}, d>, detail::evaluated(R)>;
}
constexpr Run ten{.seq = 10};

// A row of a dense layer: 12,288 multiply-adds of attention's projections, 24,576 of SwiGLU. A (query, key) pair: 2
// x 64.
constexpr long long row = 2 * (12'288 + 24'576);
constexpr long long pair = 2 * 2 * 64;
constexpr long long router = 2 * 64 * 10;
constexpr long long head = 2 * 256 * 64 * 10;

// ---- dense and sparse: 10 tokens, 55 pairs; ceil(10/4) = 3 rows, 6 pairs --------------------------------------------

constexpr auto mixed = dense + sparse<4> * 2_c + dense;
constexpr flop_counts sum = of<ten>(mixed);
constexpr long long linear = 2 * 10 * row + 2 * (3 * row + router) + head;
constexpr long long pairs = 2 * 55 * pair + 2 * 6 * pair;
static_assert(linear + pairs == 2'278'400);
static_assert(sum.forward == 2'278'400);
static_assert(sum.forward < sum.useful && sum.useful >= sum.forward && sum.forward != sum.useful);
static_assert(sum.useful == 6'835'200);
static_assert(sum.training.sequence == ratio(3 * linear) + ratio(7, 2) * ratio(pairs));
static_assert(sum.training == 6'850'816);
static_assert(sum.forward.per_token() == ratio(227'840));

// Paper: all 100 pairs, shares of exactly 1/4 and 1/16, neither head nor router.
static_assert(sum.paper.per_token() ==
              ratio(2 * row) + ratio(2 * row, 4) + ratio(2 * 10 * pair) + ratio(2 * 10 * pair, 16));
static_assert(sum.paper == 1'897'600 && sum.paper_with_head == 1'897'600 + head);
static_assert(sum.paper_mixing.per_token() == ratio(5'440));
static_assert(of<Run{.seq = 7}>(dense + sparse<3> + dense).paper.per_token() ==
                  ratio(2 * row) + ratio(row, 3) + ratio(2 * 7 * pair) + ratio(7 * pair, 9),
              "a rational number");

// Replay: the hidden rows of feed-forward parts, or all of every layer.
static_assert(of<Run{.seq = 10, .replay = recompute::selective}>(mixed).training ==
              6'850'816 + (2 * 10 + 2 * 3) * 2 * (2 * 64 * 128));
static_assert(of<Run{.seq = 10, .replay = recompute::full}>(mixed).training == 6'850'816 + 2'278'400 - head);
static_assert(of<Run{.seq = 10, .replay = recompute::selective}>(gated_delta).training.sequence ==
                  of<ten>(gated_delta).training.sequence + ratio(10 * 2 * (2 * 64 * 128)),
              "a mixer's gates are not hidden rows");
static_assert(of<Run{.seq = 10, .replay = recompute::selective}>(mamba).training ==
              of<ten>(mamba).training.sequence.num());

// Batch, accumulation and ranks change nothing that is counted per sequence.
static_assert(of<Run{.seq = 10, .batch = 8, .accumulate = 4, .ranks = 2}>(mixed).forward == 2'278'400);

// ---- ceil(L/K), K = 1, K beyond L -----------------------------------------------------------------------------------

constexpr long long dense_and_head = 10 * row + 55 * pair + head;
static_assert(of<ten>(sparse<1> + dense).forward == dense_and_head + 10 * row + 55 * pair + router);
static_assert(of<ten>(sparse<3> + dense).forward == dense_and_head + 4 * row + 10 * pair + router);
static_assert(of<ten>(sparse<5> + dense).forward == dense_and_head + 2 * row + 3 * pair + router);
static_assert(of<ten>(sparse<64> + dense).forward == dense_and_head + 1 * row + 1 * pair + router);

// ---- windows: a query sees min(i + 1, 3) keys; of chosen rows, every fourth, one
// --------------------------------------

constexpr attention_policy window{.window = 3};
constexpr auto windowed = layer<Attention<window>, SwiGLU<>>;
static_assert(of<ten>(windowed).forward == 10 * row + (1 + 2 + 8 * 3) * pair + head);
static_assert(of<ten>(sparse<4>(windowed) + dense).forward == dense_and_head + 3 * row + 3 * pair + router);
static_assert(of<ten>(sparse<2>(windowed) + dense).forward == dense_and_head + 5 * row + (1 + 4 * 2) * pair + router);
static_assert(of<ten>(layer<Attention<attention_policy{.window = 99}>, SwiGLU<>>).forward ==
              10 * row + 55 * pair + head);
static_assert(of<ten>(windowed).paper.per_token() == ratio(row + 3 * pair));

// ---- documents of 4, 4 and 2 tokens: 10 + 10 + 3 pairs
// ----------------------------------------------------------------

constexpr Run documents{.seq = 10, .document = 4};
constexpr long long dense_documents = 10 * row + 23 * pair + head;
static_assert(of<documents>(dense).forward == dense_documents);
static_assert(of<documents>(dense).paper.per_token() == ratio(row + 4 * pair));
// 3 rows of the sequence, dealt evenly to whole documents, 2 and 1: 3 + 1 pairs.
static_assert(of<documents>(sparse<4> + dense).forward == dense_documents + 3 * row + 4 * pair + router);
// Chosen by document, one each: 3 pairs.
constexpr sparse_policy by_document{.scope = selection_scope::document};
static_assert(of<documents>(sparse<4, by_document> + dense).forward == dense_documents + 3 * row + 3 * pair + router);
// 2, 2 and 1 rows: 3 + 3 + 1 pairs.
static_assert(of<documents>(sparse<2, by_document> + dense).forward == dense_documents + 5 * row + 7 * pair + router);
static_assert(of<documents>(sparse<2> + dense).forward == dense_documents + 5 * row + 7 * pair + router);
// More rows than the sequence's own ceil: 3 documents of ceil(3/2) = 2, one of one.
static_assert(of<Run{.seq = 10, .document = 3}>(sparse<2, by_document> + dense).forward ==
              10 * row + (3 * 6 + 1) * pair + head + 7 * row + (3 * 3 + 1) * pair + router);
static_assert(of<Run{.seq = 10, .document = 10}>(mixed).forward == 2'278'400, "one document");

// ---- keys of every row: 4,096 of the projections for all 10 rows, 3 queries of 11/2 keys
// ------------------------------

constexpr sparse_policy full_keys{.keys = key_scope::full};
static_assert(of<ten>(sparse<4, full_keys> + dense).forward.sequence ==
              ratio(dense_and_head + 3 * (row - 2 * 4'096) + 10 * 2 * 4'096 + router) + ratio(33, 2) * ratio(pair));
static_assert(of<ten>(sparse<4, full_keys> + dense).paper.per_token() ==
              ratio(row + 10 * pair) + ratio(row - 2 * 4'096, 4) + ratio(2 * 4'096) + ratio(10 * pair, 4));

// ---- experts: attention, the router, 2 of 8 experts of 6,144; in sparse layers for 3 rows
// -----------------------------

constexpr long long expert_row = 2 * (12'288 + 512 + 2 * 6'144);
static_assert(of<ten>(moe<8, 2>).forward == 10 * expert_row + 55 * pair + head);
static_assert(of<ten>(moe<8, 2>).paper.per_token() == ratio(expert_row + 10 * pair));
static_assert(of<ten>(sparse<4>(moe<8, 2>) + dense).forward == dense_and_head + 3 * expert_row + 6 * pair + router);
static_assert(of<ten>(moe<8, 2, moe_policy{.shared = 1}>).forward == 10 * (expert_row + 2 * 6'144) + 55 * pair + head);
static_assert(of<ten>(moe<8, 3>).forward == 10 * (expert_row + 2 * 6'144) + 55 * pair + head);
// Selective replay repeats gate and up of the executed experts: 2 x 2 x 64 x 32 a row.
static_assert(of<Run{.seq = 10, .replay = recompute::selective}>(moe<8, 2>).training.sequence ==
              of<ten>(moe<8, 2>).training.sequence + ratio(10 * 2 * 2 * (2 * 64 * 32)));

// ---- depth slots: layers read 0, 2, 4 and 6 of them; a slot costs what a pair costs
// -----------------------------------

constexpr auto depth = moda * 3_c + moda_last;
constexpr long long moda_row = row + 2 * 4'096;  // the projection of the slot from the feed-forward input
static_assert(of<ten>(depth).forward == 3 * 10 * moda_row + 10 * row + 4 * 55 * pair + (2 + 4 + 6) * 10 * pair + head);
static_assert(of<ten>(depth).paper_mixing.per_token() == ratio((4 * 10 + 12) * pair));
static_assert(of<ten>(depth).training.sequence ==
              ratio(3 * (3 * 10 * moda_row + 10 * row + head)) + ratio(7, 2) * ratio((4 * 55 + 12 * 10) * pair));
// Bounded to three: 0, 2, 3 and, unbounded, 6.
constexpr auto bounded = moda_with<moda_policy{.slots = 3}> * 3_c + moda_last;
static_assert(of<ten>(bounded).paper_mixing.per_token() == ratio((4 * 10 + 2 + 3 + 6) * pair));
// A bound of all slots is no bound.
static_assert(of<ten>(moda_with<moda_policy{.slots = 6}> * 3_c + moda_last).forward ==
              of<ten>(depth).forward.sequence.num());
// Layers that write and do not read; a sparse layer reads for its rows only.
constexpr auto writers = moda_with<moda_policy{.reads = false}>;
static_assert(of<ten>(writers * 3_c + moda_last).paper_mixing.per_token() == ratio((4 * 10 + 6) * pair));
static_assert(of<ten>(moda * 3_c + sparse<4>(moda_last) + dense).forward ==
              3 * 10 * moda_row + 3 * 55 * pair + (2 + 4) * 10 * pair +          // writers
                  3 * row + 6 * pair + 6 * 3 * pair + router + dense_and_head);  // three rows, six slots
// An upper bound: a sparse layer counts as a writer at every position, though it writes at those that it executes.
constexpr auto sparse_writer = sparse<4>(moda) + dense + moda_last;
static_assert(of<ten>(sparse_writer).paper_mixing.per_token() ==
              of<ten>(sparse<4> + dense * 2_c).paper_mixing.per_token() + ratio(2 * pair));
static_assert(state<Model<sparse_writer, d>, ten>.depth_slots == 2);
// Across runs and repetitions the slots go on adding up: 0, 2, then 4, 6.
static_assert(of<ten>((moda * 2_c + dense) * 2_c).paper_mixing.per_token() == ratio((6 * 10 + 12) * pair));

// ---- recurrences: 2 multiply-adds a state element and row, 3 for the delta rule
// ---------------------------------------

constexpr ratio recurrence(const flop_counts& counts) { return counts.paper_mixing.per_token() / ratio(2); }
static_assert(recurrence(of<ten>(s4)) == ratio(2 * 64 * 64));
static_assert(recurrence(of<ten>(mamba)) == ratio(2 * 128 * 16));
static_assert(recurrence(of<ten>(mamba2)) == ratio(2 * 128 * 128));
static_assert(recurrence(of<ten>(linear_attention)) == ratio(4 * 16 * (2 * 16 + 1)));  // S, z and both read-outs
static_assert(recurrence(of<ten>(gated_delta)) == ratio(3 * 4 * 16 * 16));
constexpr long long mamba_row = 2 * (16'384 + 4'608 + 512 + 8'192) + 2 * 4'096;
static_assert(of<ten>(mamba).forward == 10 * mamba_row + head);
static_assert(of<ten>(mamba).training == 3 * (10 * mamba_row + head));
static_assert(of<ten>(sparse<4>(mamba) + dense).forward == dense_and_head + 3 * mamba_row + router);
static_assert(of<ten>(sparse<4>(mamba) + dense).paper.per_token() == ratio(row + 10 * pair) + ratio(mamba_row, 4));

// ---- loops: weights once, work and state for each pass
// ----------------------------------------------------------------

static_assert(of<ten>(loop<3>(dense)).forward == 3 * (10 * row + 55 * pair) + head);
static_assert(total<Model<loop<3>(dense), d>> == total<Model<dense, d>>);

// ---- state of 10 tokens: a row of keys and values is 2 x 2 x 16 elements of 2 bytes
// -----------------------------------

template <Run R, pattern P>
constexpr state_counts kept(P) {
    return state<Model<P{}, d>, detail::evaluated(R)>;
}
constexpr long long kv_row = 2 * 2 * 16 * 2;
static_assert(kept<ten>(mixed).kv_expected == ratio(2 * 10 * kv_row) + ratio(2 * 10 * kv_row, 4));
static_assert(kept<ten>(mixed).kv_capacity == 4 * 10 * kv_row);
static_assert(kept<ten>(dense + sparse<3> + dense).kv_expected == ratio(2 * 10 * kv_row) + ratio(10 * kv_row, 3));
static_assert(kept<ten>(sparse<4, full_keys> + dense).kv_expected == ratio(2 * 10 * kv_row));
static_assert(kept<ten>(windowed).kv_capacity == 3 * kv_row && kept<Run{.seq = 2}>(windowed).kv_capacity == 2 * kv_row);
static_assert(kept<ten>(sparse<4>(windowed) + dense).kv_expected == ratio(3 * kv_row, 4) + ratio(10 * kv_row));
static_assert(kept<ten>(loop<3>(dense)).kv_capacity == 3 * 10 * kv_row);
static_assert(kept<ten>(sparse<4>(ffn_only) + dense).kv_capacity == 10 * kv_row);
static_assert(state<Model<mixed, d>, ten, state_precision{.kv = 1}>.kv_capacity == 4 * 10 * kv_row / 2);

// Recurrent state in f32, whatever the length; the convolution keeps its last width - 1 inputs, or width as the book
// chapter counts.
static_assert(kept<ten>(s4).recurrent == 4 * 64 * 64 && kept<ten>(s4).recurrent_full == 4 * 64 * 64);
static_assert(kept<ten>(mamba).recurrent == 4 * 128 * (16 + 3) &&
              kept<ten>(mamba).recurrent_full == 4 * 128 * (16 + 4));
static_assert(kept<ten>(mamba2).recurrent == 4 * (128 * 128 + 384 * 3));
static_assert(kept<ten>(mamba2).recurrent_full == 4 * (128 * 128 + 384 * 4));
static_assert(kept<ten>(linear_attention).recurrent == 4 * 4 * 16 * (16 + 1));
static_assert(kept<ten>(gated_delta).recurrent == 4 * (4 * 16 * 16 + 3 * 64 * 3));
static_assert(kept<ten>(gated_delta).recurrent_full == 4 * (4 * 16 * 16 + 3 * 64 * 4));
static_assert(kept<ten>(sparse<4>(mamba) + dense).recurrent == kept<ten>(mamba).recurrent);
static_assert(kept<ten>(mamba * 3_c + dense).recurrent == 3 * kept<ten>(mamba).recurrent);

// Depth slots of one position: 2 a layer, of one row of keys and values each.
static_assert(kept<ten>(depth).depth_slots == 6 && kept<ten>(depth).depth_bytes == 6 * kv_row);
static_assert(kept<ten>(depth).kv_capacity == 4 * 10 * kv_row);
static_assert(kept<ten>(moda_with<moda_policy{.ffn = false}> * 3_c + moda_last).depth_slots == 3);

// ---- depth
// ------------------------------------------------------------------------------------------------------------

static_assert(active_layers<Model<mixed, d>> == ratio(5, 2));
// A formula of 2,001 runs stays far within the compilers' limits.
constexpr auto long_formula = dense + (sparse<4> + dense) * 1000_c;
static_assert(active_layers<Model<long_formula, d>> == ratio(1001 + 250));
static_assert(of<ten>(long_formula).forward ==
              1001 * (10 * row + 55 * pair) + 1000 * (3 * row + 6 * pair + router) + head);
static_assert(kept<ten>(long_formula).kv_expected == ratio((1001 + 250) * 10 * kv_row));
static_assert(active_layers<Model<dense + sparse<3> + dense, d>> == ratio(7, 3));

// Unlike sparsities in a large model: whole parts of 2^51 FLOPs beside a denominator of 3003^2.
constexpr Dims wide{.width = 4096, .head_dim = 128, .heads = 32, .kv_heads = 8, .ffn = 14336, .vocab = 128'256};
template <auto formula>
constexpr flop_counts far = flops<Model<formula, wide>, Run{.seq = 131'072}>;
constexpr auto unlike = dense + sparse<3> + sparse<7> + sparse<11> + sparse<13> + dense;
constexpr ratio wide_mixing = far<dense>.paper_mixing.sequence;
constexpr ratio wide_linear(ratio(131'072 * 2LL * 4096 * (4096 * 2 + 1024 * 2 + 14'336 * 3)));
static_assert(far<dense>.paper.sequence == wide_linear + wide_mixing);
static_assert(far<unlike>.paper_mixing.sequence ==
              wide_mixing * (ratio(2) + ratio(1, 9) + ratio(1, 49) + ratio(1, 121) + ratio(1, 169)));
static_assert(far<unlike>.paper.sequence ==
              far<unlike>.paper_mixing.sequence +
                  wide_linear * (ratio(2) + ratio(1, 3) + ratio(1, 7) + ratio(1, 11) + ratio(1, 13)));
static_assert(far<unlike>.paper.sequence.num() == count::largest, "as one fraction it does not fit");
static_assert(active_layers<Model<unlike, wide>> == ratio(2) + ratio(1, 3) + ratio(1, 7) + ratio(1, 11) + ratio(1, 13));

}  // namespace
