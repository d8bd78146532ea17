// SPDX-License-Identifier: MIT
// Depth attention of whole models against plain loops over single tokens; which slots there are, and what reading none
// or all of them means.
#include <limits>
#include <map>
#include <type_traits>
#include <utility>

#include "laws/moda_models.hpp"
#include "laws/pipeline_laws.hpp"

using namespace laws;

namespace {

using vec = std::vector<double>;

double dot(const vec& a, const vec& b) {
    double sum = 0;
    for (std::size_t c = 0; c < a.size(); ++c) sum += a[c] * b[c];
    return sum;
}
vec normed(const vec& x, const double* gain) {
    vec y = x;
    const double rstd = 1 / std::sqrt(dot(x, x) / static_cast<double>(x.size()) + 1e-6);
    for (std::size_t c = 0; c < x.size(); ++c) y[c] *= rstd * gain[c];
    return y;
}
vec rotated(const vec& x, std::size_t position) {
    vec y = x;
    const std::size_t half = x.size() / 2;
    for (std::size_t c = 0; c < half; ++c) {
        const double angle =
            static_cast<double>(position) * std::pow(1e6, -static_cast<double>(2 * c) / static_cast<double>(x.size()));
        y[c] = x[c] * std::cos(angle) - x[c + half] * std::sin(angle);
        y[c + half] = x[c + half] * std::cos(angle) + x[c] * std::sin(angle);
    }
    return y;
}

/// A head's keys or values: [KV head] of one token and one layer.
using heads = std::vector<vec>;
struct slot {
    heads k, v;
};

/// A stack of equal layers deep<P> in one sequence, written down token by token from the paper's text.
template <class M, moda_policy P>
class plain_stack {
  public:
    explicit plain_stack(subject<M, short_run>& model) {
        for_each_file_tensor<M>([&](const file_tensor& t) { at_[t.name] = model.weights() + t.offset; });
    }
    /// Shares of probability on slots, [layer][query head], summed over tokens.
    std::vector<vec> shares;

    /// [tokens][V]
    std::vector<vec> logits(const std::vector<int>& tokens) {
        std::vector<vec> x;
        for (const int token : tokens) {
            const double* row = at_.at("model.embed_tokens.weight") + token * small.width;
            x.emplace_back(row, row + small.width);
        }
        std::vector<std::vector<slot>> slots(tokens.size());
        shares.clear();
        for (long long l = 0; l < M::layers; ++l) layer("model.layers." + std::to_string(l) + ".", x, slots);
        for (vec& row : x) {
            row = product("lm_head.weight", normed(row, at_.at("model.norm.weight")), small.vocab);
        }
        return x;
    }

  private:
    vec product(const std::string& name, const vec& x, long long outputs) const {
        vec y;
        const double* row = at_.at(name);
        for (long long o = 0; o < outputs; ++o, row += x.size()) y.push_back(dot(vec(row, row + x.size()), x));
        return y;
    }
    // Heads of a projection; with a norm's name normed and turned to `position`.
    heads projected(const std::string& name, const vec& x, long long count, const std::string& norm,
                    std::size_t position) const {
        const vec y = product(name, x, count * small.head_dim);
        heads out;
        for (auto from = y.begin(); from != y.end(); from += small.head_dim) {
            const vec head(from, from + small.head_dim);
            out.push_back(norm.empty() ? head : rotated(normed(head, at_.at(norm)), position));
        }
        return out;
    }
    static std::vector<slot> seen(const std::vector<slot>& all) {
        const auto n = static_cast<std::ptrdiff_t>(all.size()), bound = static_cast<std::ptrdiff_t>(P.slots);
        if (bound == 0 || bound >= n) return all;
        if (P.choice == slot_choice::nearest) return {all.end() - bound, all.end()};
        if (P.choice == slot_choice::first) return {all.begin(), all.begin() + bound};
        std::vector<slot> ends(all.begin(), all.begin() + bound / 2);
        ends.insert(ends.end(), all.end() - (bound - bound / 2), all.end());
        return ends;
    }
    // Softmax over candidates (logit, value); returns the output and leaves the probabilities.
    static vec attention(std::vector<std::pair<double, vec>>& candidates) {
        vec out(static_cast<std::size_t>(small.head_dim), 0);
        double sum = 0;
        for (auto& [logit, value] : candidates) sum += logit = std::exp(logit);
        for (auto& [logit, value] : candidates) {
            logit /= sum;
            for (std::size_t c = 0; c < out.size(); ++c) out[c] += logit * value[c];
        }
        return out;
    }
    void layer(const std::string& prefix, std::vector<vec>& x, std::vector<std::vector<slot>>& slots) {
        const std::string attn = prefix + "self_attn.", q_norm = attn + "q_norm.weight",
                          k_norm = attn + "k_norm.weight";
        std::vector<slot> earlier;  // keys and values of the positions so far
        vec& share = shares.emplace_back(static_cast<std::size_t>(small.heads), 0);
        for (std::size_t t = 0; t < x.size(); ++t) {
            const vec y = normed(x[t], at_.at(prefix + "input_layernorm.weight"));
            const heads q = projected(attn + "q_proj.weight", y, small.heads, q_norm, t);
            earlier.push_back({projected(attn + "k_proj.weight", y, small.kv(), k_norm, t),
                               projected(attn + "v_proj.weight", y, small.kv(), "", t)});
            const std::vector<slot> depth = P.reads ? seen(slots[t]) : std::vector<slot>{};
            vec o;
            for (std::size_t a = 0; a < q.size(); ++a) {
                const auto kv = a / static_cast<std::size_t>(small.heads / small.kv());
                std::vector<std::pair<double, vec>> sequence, of_depth;
                const double scale = std::sqrt(static_cast<double>(small.head_dim));
                for (const slot& s : earlier) sequence.emplace_back(dot(q[a], s.k[kv]) / scale, s.v[kv]);
                for (const slot& s : depth) of_depth.emplace_back(dot(q[a], s.k[kv]) / scale, s.v[kv]);
                if (P.joint) sequence.insert(sequence.end(), of_depth.begin(), of_depth.end());
                vec out = attention(sequence);
                if (P.joint) {
                    for (std::size_t s = earlier.size(); s < sequence.size(); ++s) share[a] += sequence[s].first;
                } else if (!of_depth.empty()) {
                    const vec more = attention(of_depth);
                    for (std::size_t c = 0; c < out.size(); ++c) out[c] += more[c];
                }
                o.insert(o.end(), out.begin(), out.end());
            }
            const vec mixed = product(attn + "o_proj.weight", o, small.width);
            for (std::size_t c = 0; c < mixed.size(); ++c) x[t][c] += mixed[c];
            const vec z = normed(x[t], at_.at(prefix + "post_attention_layernorm.weight"));
            const std::string depth_name = prefix + "depth.";
            if (P.attention == attention_slot::reused) slots[t].push_back(earlier.back());
            if (P.attention == attention_slot::projected) {
                slots[t].push_back({projected(depth_name + "attention_k_proj.weight", y, small.kv(), k_norm, t),
                                    projected(depth_name + "attention_v_proj.weight", y, small.kv(), "", t)});
            }
            if (P.ffn) {
                slots[t].push_back({projected(depth_name + "ffn_k_proj.weight", z, small.kv(), k_norm, t),
                                    projected(depth_name + "ffn_v_proj.weight", z, small.kv(), "", t)});
            }
            const vec gate = product(prefix + "mlp.gate_proj.weight", z, small.ffn);
            vec hidden = product(prefix + "mlp.up_proj.weight", z, small.ffn);
            for (std::size_t c = 0; c < hidden.size(); ++c) hidden[c] *= gate[c] / (1 + std::exp(-gate[c]));
            const vec f = product(prefix + "mlp.down_proj.weight", hidden, small.width);
            for (std::size_t c = 0; c < f.size(); ++c) x[t][c] += f[c];
        }
    }

    std::map<std::string, const double*> at_;
};

/// Logits and reported shares of a stack equal those of the plain loops.
template <moda_policy P, long long N>
void equals_plain_loops() {
    using M = Model<Repeat<std::remove_cvref_t<decltype(deep<P>)>, N>{}, small>;
    subject<M, short_run> model(7);
    const auto batch = random_batch::of<M, short_run>(7, false);
    const auto got = model.model().logits(batch.view(false));
    std::vector<depth_mass> masses;
    model.model().evaluate(
        batch.view(false), selection_rule::threshold, [](auto&&...) {}, nullptr, &masses);
    plain_stack<M, P> plain(model);
    std::vector<vec> shares(static_cast<std::size_t>(N), vec(4, 0));
    for (std::size_t b = 0; b < 2; ++b) {
        const auto begin = batch.tokens.begin() + static_cast<std::ptrdiff_t>(13 * b);
        const auto want = plain.logits({begin, begin + 13});
        for (std::size_t t = 0; t < 13; ++t)
            for (std::size_t v = 0; v < 19; ++v)
                REQUIRE(std::abs(got[(13 * b + t) * 19 + v] - want[t][v]) <=
                        1e-10 * std::max(1.0, std::abs(want[t][v])));
        for (std::size_t l = 0; l < shares.size(); ++l)
            for (std::size_t a = 0; a < 4; ++a) shares[l][a] += plain.shares[l][a] / 26;
    }
    if (!P.joint) {
        CHECK(masses.empty());
        return;
    }
    REQUIRE(masses.size() == static_cast<std::size_t>(N));
    for (std::size_t l = 0; l < masses.size(); ++l) {
        CHECK(masses[l].layer == static_cast<long long>(l));
        for (std::size_t a = 0; a < 4; ++a) CHECK(std::abs(masses[l].share(a) - shares[l][a]) <= 1e-10);
        CHECK((masses[l].share() > 0) == (l > 0));
    }
}

template <class M>
std::map<std::string, file_tensor> tensors_of() {
    std::map<std::string, file_tensor> all;
    for_each_file_tensor<M>([&](const file_tensor& t) { all.emplace(t.name, t); });
    return all;
}
/// To has the tensors of From, and may lack some of them.
template <class From, class To>
void copy_weights(subject<From, short_run>& from, subject<To, short_run>& to) {
    const auto tensors = tensors_of<From>();
    for_each_file_tensor<To>([&](const file_tensor& t) {
        std::copy_n(from.weights() + tensors.at(t.name).offset, t.elements, to.weights() + t.offset);
    });
}

}  // namespace

TEST_CASE("depth attention equals plain loops over tokens, and so does the reported mass") {
    equals_plain_loops<moda_policy{}, 3>();
    equals_plain_loops<projects, 3>();
    equals_plain_loops<ends_of_three, 4>();
    equals_plain_loops<first_three, 3>();
    equals_plain_loops<last_three, 3>();
    equals_plain_loops<separate, 3>();
}

TEST_CASE("a bound of all slots is no bound, bit for bit") {
    using Bounded = Model<deep<moda_policy{.slots = 6, .choice = slot_choice::mixed}> * 3_c + moda_last, small>;
    subject<MoDA, short_run> all(3);
    subject<Bounded, short_run> bounded(3);
    const auto batch = random_batch::of<MoDA, short_run>(3, true);
    CHECK(all.loss(batch, true) == bounded.loss(batch, true));
    // Only slots that somebody reads take memory.
    static_assert(stored_slots<MoDA> == 6 && state<MoDA, short_run>.depth_slots == 6);
    static_assert(stored_slots<Model<moda * 4_c, small>> == 6);
    static_assert(stored_slots<MoDAFirstThree> == 3 && stored_slots<MoDAMixed> == 6 && stored_slots<Qwen> == 0);
    using memory = plan<MoDA, host<double>, short_run>;
    static_assert(memory::slot_bytes >= 26 * 6 * 2 * 2 * 4 * 2 * 8 &&
                  plan<Qwen, host<double>, short_run>::slot_bytes == 0);
}

TEST_CASE("slots of decoding do not grow with the context") {
    using Plain = Model<dense * 4_c, small>;
    constexpr auto more_than_plain = []<long long Context>(std::integral_constant<long long, Context>) {
        constexpr Run run{.seq = 2, .batch = 1, .context = Context};
        return decoding_bytes<MoDA, host<double>, run> - decoding_bytes<Plain, host<double>, run>;
    };
    constexpr long long slots = more_than_plain(std::integral_constant<long long, 100>{});
    static_assert(slots == more_than_plain(std::integral_constant<long long, 100'000>{}));
    CHECK(slots > 2 * 6 * 2 * 2 * 4 * 8);  // two rows of six slots
}

TEST_CASE("hidden slots are not there: all of them leave attention alone, bit for bit") {
    using Plain = Model<dense * 4_c, small>;
    subject<MoDA, short_run> model(4);
    subject<Plain, short_run> plain(5);
    copy_weights(model, plain);
    const auto batch = random_batch::of<MoDA, short_run>(4, false);
    const auto all = model.model().logits(batch.view(false));
    model.model().hide_slots({0, 1, 2, 3, 4, 5});
    CHECK(model.model().logits(batch.view(false)) == plain.model().logits(batch.view(false)));
    for (long long slot = 0; slot < 6; ++slot) {
        model.model().hide_slots({slot});
        CHECK(model.model().logits(batch.view(false)) != all);
    }
    model.model().hide_slots({});
    CHECK(model.model().logits(batch.view(false)) == all);
    CHECK_THROWS_AS(model.model().hide_slots({6}), error);
}

TEST_CASE("a token that skipped a layer has no slot of it, and slots of an earlier batch are gone") {
    subject<MoDASparse, short_run> model(6);
    const auto tensors = tensors_of<MoDASparse>();
    // Queries of zero: all logits are equal, and shares are numbers of slots over numbers of slots and keys.
    for (const auto& [name, t] : tensors) {
        if (name.find("q_proj") != std::string::npos) std::fill_n(model.weights() + t.offset, t.elements, 0.0);
    }
    const auto batch = random_batch::of<MoDASparse, short_run>(6, true);
    model.model().logits(random_batch::of<MoDASparse, short_run>(16, false).view(false));  // fills every slot's memory
    std::vector<std::vector<char>> took(5, std::vector<char>(26, 0));
    std::vector<depth_mass> masses;
    took[0].assign(26, 1), took[4].assign(26, 1);
    model.model().evaluate(
        batch.view(true), selection_rule::top,
        [&](long long layer, const auto& routed) {
            for (std::size_t b = 0; b < 2; ++b)
                for (std::size_t j = 0; j < static_cast<std::size_t>(routed.live[b]); ++j)
                    took[static_cast<std::size_t>(layer)][13 * b + static_cast<std::size_t>(routed.ids[13 * b + j])] =
                        1;
        },
        nullptr, &masses);
    REQUIRE(masses.size() == 5);
    for (std::size_t layer = 0; layer < 5; ++layer) {
        double sum = 0;
        int rows = 0;
        for (std::size_t b = 0; b < 2; ++b)
            for (std::size_t t = 0; t < static_cast<std::size_t>(batch.live[b]); ++t) {
                if (took[layer][13 * b + t] == 0) continue;
                int keys = 0, slots = 0;
                for (std::size_t i = 0; i <= t; ++i)
                    keys += took[layer][13 * b + i] != 0 && batch.documents[13 * b + i] == batch.documents[13 * b + t]
                                ? 1
                                : 0;
                for (std::size_t l = 0; l < layer; ++l) slots += took[l][13 * b + t] != 0 ? 2 : 0;
                sum += static_cast<double>(slots) / (slots + keys);
                ++rows;
            }
        INFO("layer " << layer);
        CHECK(masses[layer].share_if_even() == Approx(sum / rows).epsilon(1e-12));
        CHECK(masses[layer].share() == Approx(sum / rows).epsilon(1e-12));
    }
}

TEST_CASE("depth attention: replays change no bit") {
    using M = Model<deep<projects> + sparse<2>(moda) * 2_c + deep<ends_apart> + moda_last, small>;
    constexpr Run full{.seq = 13, .batch = 2, .max_documents = 3, .replay = recompute::full};
    replays_change_no_bit<M, short_run>();
    static_assert(plan<M, host<double>, full>::saved_bytes < plan<M, host<double>, short_run>::saved_bytes);
}

TEST_CASE("a depth branch of its own begins with attention to no key: no output, no weight") {
    const auto nothing = []<class T>(T) {
        host<T> backend(2);
        std::vector<T> q(5 * 2 * 3, T{1}), k(2 * 3, T{1}), o(q.size(), T{7});
        std::vector<attention_sum_t<T>> lse(5 * 2, 7);
        backend.attention({.heads = 2,
                           .kv_heads = 1,
                           .head_dim = 3,
                           .queries = {5, nullptr},
                           .keys = {0, nullptr},
                           .q = q.data(),
                           .k = k.data(),
                           .v = k.data(),
                           .o = o.data(),
                           .lse = lse.data()});
        CHECK(o == std::vector<T>(o.size(), T{0}));
        CHECK(std::all_of(lse.begin(), lse.end(), [](auto x) { return x == -std::numeric_limits<T>::infinity(); }));
    };
    nothing(1.0F);
    nothing(1.0);
}

TEST_CASE("depth attention does not depend on the number of threads") {
    const auto gradients = [](int threads) {
        host<float> backend(threads);
        pipeline<MoDASparse, host<float>, short_run> model(backend);
        model.initialise(5);
        const auto batch = random_batch::of<MoDASparse, short_run>(5, true);
        model.accumulate(batch.view(true), batch.totals);
        const float* g = model.parameters().gradients;
        return std::vector<float>(g, g + tensor_table<MoDASparse>.elements);
    };
    const auto one = gradients(1);
    CHECK(std::any_of(one.begin(), one.end(), [](float g) { return g != 0; }));
    CHECK(gradients(3) == one);
}
