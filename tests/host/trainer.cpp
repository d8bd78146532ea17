// SPDX-License-Identifier: MIT
// Training end to end on the host: resume, checkpoints and their errors, evaluation, accumulation, the update's groups.
#include "sdepth/trainer.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "sdepth/sdepth.hpp"
#include "small_training.hpp"
#include "support/catch.hpp"

namespace {

using namespace small_training;

using Wider = Model<dense + sparse<2> * 2_c + dense,
                    Dims{.width = 16, .head_dim = 8, .heads = 2, .kv_heads = 1, .ffn = 32, .vocab = 256}>;
using Printed = Model<dense + sparse<2, printed_policy> * 2_c + dense, small>;
}  // namespace

TEST_CASE("a resumed run equals an uninterrupted one bit for bit") {
    for (const optimiser kind : {optimiser::adamw, optimiser::muon}) {
        const temporary_folder folder;
        const corpus whole = written(folder, "text.txt", 40);
        training_settings settings{.steps = 6, .sequences = 4, .kind = kind, .rate = 3e-3, .seed = 5};
        training_of<XMoD> straight;
        trainer a(straight.model, whole, whole, settings);
        a.start();
        run_to_end(a, -1);

        settings.checkpoint = folder.path() / "run.safetensors";
        training_of<XMoD> first;
        trainer b(first.model, whole, whole, settings);
        b.start();
        run_to_end(b, 4);
        training_of<XMoD> second;
        trainer c(second.model, whole, whole, settings);
        c.resume(settings.checkpoint);
        CHECK(c.state().step == 4);
        run_to_end(c, -1);
        CHECK(second.weights() == straight.weights());
        CHECK(straight.weights() != first.weights());
    }
}

TEST_CASE("memory for Muon's moments alone changes no bit and no file") {
    constexpr Run muon_alone = [] {
        Run r = pairs;
        r.moments = optimiser::muon;
        return r;
    }();
    using two = plan<XMoD, host<float>, pairs>;
    using one = plan<XMoD, host<float>, muon_alone>;
    constexpr long long of_muon = [] {
        long long elements = 0;
        for (const table_row& row : tensor_table<XMoD>.rows)
            if (row.tensor.group == update_group::muon) elements += row.layers * detail::padded(row.tensor.elements());
        return elements;
    }();
    // Less what the matrices had, and the room between layers that the rest leaves no more.
    static_assert(two::parameter_bytes - one::parameter_bytes >= 4 * of_muon && of_muon > 4 * 1000);
    static_assert(two::peak_bytes - one::peak_bytes == two::parameter_bytes - one::parameter_bytes);

    const temporary_folder folder;
    const corpus whole = written(folder, "text.txt", 40);
    training_settings settings{.steps = 6, .sequences = 4, .kind = optimiser::muon, .rate = 3e-3, .seed = 5};
    const auto bytes_of = [](const std::filesystem::path& path) {
        std::ifstream file(path, std::ios::binary);
        return std::string{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
    };
    settings.checkpoint = folder.path() / "two.safetensors";
    training_of<XMoD> straight;
    CHECK(straight.model.bytes() == static_cast<std::size_t>(two::peak_bytes));
    trainer a(straight.model, whole, whole, settings);
    a.start();
    run_to_end(a, 4);

    settings.checkpoint = folder.path() / "one.safetensors";
    training_of<XMoD, muon_alone> less;
    CHECK(less.model.bytes() == static_cast<std::size_t>(one::peak_bytes));
    trainer b(less.model, whole, whole, settings);
    b.start();
    run_to_end(b, 4);
    const std::string file = bytes_of(settings.checkpoint);
    CHECK((file.size() > 10'000 && file == bytes_of(folder.path() / "two.safetensors")));

    training_of<XMoD, muon_alone> again;
    trainer c(again.model, whole, whole, settings);
    c.resume(settings.checkpoint);
    run_to_end(c, -1), run_to_end(a, -1);
    CHECK(again.weights() == straight.weights());

    settings.kind = optimiser::adamw;
    CHECK(contains(refusal([&] { trainer(less.model, whole, whole, settings); }), "train with Muon"));
    CHECK(contains(refusal([&] { less.model.advance({.kind = optimiser::adamw}); }), "train with Muon"));
}

TEST_CASE("the log of a stopped and resumed run has every step once") {
    const temporary_folder folder;
    const corpus whole = written(folder, "text.txt", 40);
    const training_settings settings{.steps = 5,
                                     .rate = 1e-3,
                                     .evaluate_every = 2,
                                     .checkpoint = folder.path() / "run.safetensors",
                                     .log = folder.path() / "log.jsonl"};
    training_of<XMoD> first;
    trainer a(first.model, whole, whole, settings);
    a.start();
    run_to_end(a, 3);
    training_of<XMoD> second;
    trainer b(second.model, whole, whole, settings);
    b.resume(settings.checkpoint);
    run_to_end(b, -1);

    std::ifstream log(settings.log);
    std::vector<int> losses(5, 0);
    int evaluations = 0;
    for (std::string line; std::getline(log, line);) {
        for (int step = 0; step < 5; ++step) {
            if (contains(line, "{\"step\": " + std::to_string(step) + ", \"loss\""))
                ++losses[static_cast<std::size_t>(step)];
        }
        evaluations += contains(line, "\"causal_loss\"") ? 1 : 0;
    }
    CHECK(losses == std::vector<int>(5, 1));
    CHECK(evaluations == 3);  // after steps 2, 4 and the last
}

TEST_CASE("a model file round-trips, and every mismatch is one error that changes nothing") {
    const temporary_folder folder;
    const auto file = folder.path() / "model.safetensors";
    training_of<XMoD> saved;
    saved.model.initialise(3);
    checkpoint files(saved.model);
    files.save_model(file);

    training_of<XMoD> loaded;
    loaded.model.initialise(4);
    checkpoint(loaded.model).load_model(file);
    CHECK(loaded.weights() == saved.weights());

    training_of<Wider> wider;
    wider.model.initialise(4);
    const auto before = wider.weights();
    const std::string other_size = refusal([&] { checkpoint(wider.model).load_model(file); });
    CHECK(contains(other_size, "is of another model"));
    CHECK(contains(other_size, "24"));
    CHECK(contains(other_size, "32"));
    CHECK(wider.weights() == before);

    training_of<Printed> printed;
    CHECK(contains(refusal([&] { checkpoint(printed.model).load_model(file); }), "is of another model"));

    training_settings settings{.steps = 2};
    const corpus whole = written(folder, "text.txt", 40);
    trainer training(loaded.model, whole, whole, settings);
    CHECK(contains(refusal([&] { training.resume(file); }), "is a model without optimiser state"));
    CHECK(contains(refusal([&] { training.resume(folder.path() / "none"); }), "none"));

    std::filesystem::resize_file(file, std::filesystem::file_size(file) / 2);
    CHECK(contains(refusal([&] { checkpoint(loaded.model).load_model(file); }), "bytes of data"));
    CHECK(loaded.weights() == saved.weights());
}

TEST_CASE("a missing, foreign or misshapen tensor is named") {
    const temporary_folder folder;
    const auto good = folder.path() / "good.safetensors", bad = folder.path() / "bad.safetensors";
    training_of<XMoD> model;
    model.model.initialise(3);
    checkpoint files(model.model);
    files.save_model(good);
    const safetensors_reader reader(good);

    const auto rewrite = [&](auto change) {
        std::vector<safetensors_entry> entries = reader.entries();
        change(entries);
        safetensors_writer writer(bad, entries, reader.metadata());
        for (const safetensors_entry& entry : entries) {
            std::uint64_t elements = 1;
            for (const std::uint64_t extent : entry.shape) elements *= extent;
            writer.write(entry.name, std::span<const float>(std::vector<float>(elements, 0.5f)));
        }
        writer.commit();
        return refusal([&] { files.load_model(bad); });
    };
    const auto before = model.weights();
    const std::string missing = rewrite([](auto& entries) {
        std::erase_if(entries, [](const auto& e) { return e.name == "model.layers.1.router.cut"; });
    });
    CHECK(contains(missing, "\"model.layers.1.router.cut\" is missing"));
    const std::string extra = rewrite(
        [](auto& entries) { entries.push_back({.name = "model.layers.4.router.cut", .dtype = "F32", .shape = {1}}); });
    CHECK(contains(extra, "tensors where this model has"));
    const std::string transposed = rewrite([](auto& entries) {
        for (auto& e : entries) {
            if (e.name == "model.layers.0.mlp.gate_proj.weight") std::swap(e.shape[0], e.shape[1]);
        }
    });
    CHECK(contains(transposed, "gate_proj.weight\" is F32 [16, 24], wanted as F32 [24, 16]"));
    CHECK(model.weights() == before);
}

TEST_CASE("evaluation does not depend on the batch size") {
    const temporary_folder folder;
    const corpus whole = written(folder, "text.txt", 11);
    const auto loss = [&]<Run R>() {
        training_of<XMoD, R> model;
        model.model.initialise(3);
        return evaluate(model.model, whole);
    };
    const evaluation one = loss.template operator()<Run{.seq = 12, .batch = 1}>();
    const evaluation three = loss.template operator()<Run{.seq = 12, .batch = 3}>();
    CHECK(one.tokens == static_cast<std::int64_t>(whole.size()) - 1);
    CHECK(three.tokens == one.tokens);
    CHECK(one.causal == Approx(three.causal).epsilon(1e-6));
    CHECK(one.top == Approx(three.top).epsilon(1e-6));
    CHECK(one.top_route.agreement > 0);
}

TEST_CASE("accumulated micro-batches have the gradient of one batch") {
    std::vector<int> tokens(48), targets(48);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        tokens[i] = static_cast<int>(i * i * 7 % 256);
        targets[i] = i % 12 == 11 ? -1 : static_cast<int>((i + 1) * (i + 1) * 7 % 256);
    }
    const step_totals totals{.targets = 44, .rows = 48};
    training_of<XMoD, Run{.seq = 12, .batch = 4}> whole;
    training_of<XMoD, pairs> halves;
    whole.model.initialise(3);
    halves.model.initialise(3);
    whole.model.accumulate({tokens.data(), targets.data()}, totals);
    halves.model.accumulate({tokens.data(), targets.data()}, totals);
    halves.model.accumulate({tokens.data() + 24, targets.data() + 24}, totals);
    double difference = 0, size = 0;
    for (long long i = 0; i < tensor_table<XMoD>.elements; ++i) {
        const double a = static_cast<double>(whole.model.parameters().gradients[i]);
        const double b = static_cast<double>(halves.model.parameters().gradients[i]);
        difference += (a - b) * (a - b);
        size += a * a;
    }
    CHECK(std::sqrt(difference / size) < 1e-5);
    CHECK(whole.model.losses(totals).language == Approx(halves.model.losses(totals).language).epsilon(1e-6));
    CHECK(whole.model.losses(totals).routing == Approx(halves.model.losses(totals).routing).epsilon(1e-6));
}

TEST_CASE("the tracked cut follows the mean cut once a step and nothing else moves it") {
    training_of<XMoD> model;
    model.model.initialise(3);
    std::vector<int> tokens(24), targets(24, 1);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int>(i * 11 % 256);
    const batch_view batch{tokens.data(), targets.data()};
    const auto cut = [&](long long layer) {
        return static_cast<double>(
            model.model.parameters()
                .weights[tensor_table<XMoD>.run_offsets[1] +
                         layer * layer_layout<std::remove_cvref_t<decltype(sparse<2>)>, small>.stride +
                         layer_layout<std::remove_cvref_t<decltype(sparse<2>)>, small>.place("router.cut", 0).offset]);
    };
    // The cut of the first sparse layer by hand: midpoint of the 6th and 7th largest logit of each sequence.
    model.model.accumulate(batch, {.targets = 24, .rows = 24});
    std::vector<double> logits;
    model.model.for_each_routed_layer([&](long long layer, const auto& saved, int) {
        if (layer == 1) logits.assign(saved.raw, saved.raw + 24);
    });
    double mean = 0;
    for (std::ptrdiff_t b = 0; b < 2; ++b) {
        std::sort(logits.begin() + b * 12, logits.begin() + (b + 1) * 12, std::greater<>());
        const auto first = static_cast<std::size_t>(b * 12);
        mean += (logits[first + 5] + logits[first + 6]) / 4;
    }
    model.model.evaluate(batch, selection_rule::threshold);
    CHECK(cut(0) == 0);
    model.model.discard();
    model.model.accumulate(batch, {.targets = 24, .rows = 24});
    model.model.update({.rate = 1e-3}, {.targets = 24, .rows = 24});
    CHECK(cut(0) == Approx(0.02 * mean).epsilon(1e-5));
    CHECK(cut(1) != 0);
    const double after = cut(1);
    model.model.evaluate(batch, selection_rule::top);
    CHECK(cut(1) == after);
}

TEST_CASE("weight decay and Muon reach the tensors that the table says") {
    std::vector<std::string> decayed, muon;
    for (const table_row& row : tensor_table<XMoD>.rows) {
        if (row.first_layer > 1) continue;
        if (row.tensor.decays) decayed.emplace_back(row.tensor.name);
        if (row.tensor.group == update_group::muon) muon.emplace_back(row.tensor.name);
    }
    const std::vector<std::string> hidden = {
        "self_attn.q_proj.weight", "self_attn.k_proj.weight", "self_attn.v_proj.weight", "self_attn.o_proj.weight",
        "mlp.gate_proj.weight",    "mlp.up_proj.weight",      "mlp.down_proj.weight"};
    std::vector<std::string> twice = hidden;  // the dense layer, then the sparse run
    twice.insert(twice.end(), hidden.begin(), hidden.end());
    CHECK(muon == twice);
    std::vector<std::string> expected = {"model.embed_tokens.weight"};
    expected.insert(expected.end(), twice.begin(), twice.end());
    expected.emplace_back("lm_head.weight");
    CHECK(decayed == expected);
}

TEST_CASE("the router's share of the rate reaches the router alone") {
    constexpr long long routers = 2;
    using Slow = Model<dense + sparse<2, sparse_policy{.router_rate = 0.25}> * 2_c + dense, small>;
    training_of<XMoD> whole;
    training_of<Slow> quarter;
    std::vector<int> tokens(24), targets(24, 1);
    for (std::size_t i = 0; i < tokens.size(); ++i) tokens[i] = static_cast<int>(i * 11 % 256);
    const step_totals totals{.targets = 24, .rows = 24};
    std::vector<float> before;
    const auto step = [&](auto& model) {
        model.model.initialise(3);
        before = model.weights();
        model.model.accumulate({tokens.data(), targets.data()}, totals);
        model.model.update({.rate = 1e-3}, totals);
        return model.weights();
    };
    const std::vector<float> by_whole = step(whole), by_quarter = step(quarter);
    long long seen = 0;
    for_each_file_tensor<XMoD>([&](const file_tensor& t) {
        const bool router = t.row->tensor.use == role::router;
        seen += router ? 1 : 0;
        INFO(t.name);
        for (auto i = static_cast<std::size_t>(t.offset); i < static_cast<std::size_t>(t.offset + t.elements); ++i) {
            const double moved = static_cast<double>(by_whole[i]) - static_cast<double>(before[i]);
            const double less = static_cast<double>(by_quarter[i]) - static_cast<double>(before[i]);
            if (router) {
                CHECK(moved != 0);
                CHECK(less == Approx(moved / 4).epsilon(1e-4));  // of .001, beside weights of .02 in fp32
            } else {
                CHECK(by_quarter[i] == by_whole[i]);
            }
        }
    });
    CHECK(seen == routers);
}

TEST_CASE("a small model learns a batch by heart") {
    training_of<XMoD> model;
    model.model.initialise(3);
    std::vector<int> tokens(24), targets(24);
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        tokens[i] = static_cast<int>(i * i * 5 % 256);
        targets[i] = static_cast<int>((i + 1) * 31 % 256);
    }
    const step_totals totals{.targets = 24, .rows = 24};
    double first = 0, last = 0;
    for (int step = 1; step <= 120; ++step) {
        model.model.accumulate({tokens.data(), targets.data()}, totals);
        last = model.model.update({.rate = 1e-2, .decay = 0, .step = step}, totals).language;
        if (step == 1) first = last;
    }
    CHECK(first > 5);
    CHECK(last < 0.05);
}

TEST_CASE("a step that is not finite changes no weight") {
    training_of<XMoD> model;
    model.model.initialise(3);
    std::vector<int> tokens(24, 1), targets(24, 2);
    model.model.parameters().weights[tensor_table<XMoD>.run_offsets[0]] = std::numeric_limits<float>::infinity();
    const auto before = model.weights();
    const step_totals totals{.targets = 24, .rows = 24};
    const std::string message = refusal([&] {
        model.model.accumulate({tokens.data(), targets.data()}, totals);
        model.model.update({.step = 7}, totals);
    });
    CHECK(message != "accepted");
    CHECK(model.weights() == before);

    // Nothing moves either in the steps that were started before anybody looked; then training goes on.
    const auto step = [&](long long number) {
        model.model.accumulate({tokens.data(), targets.data()}, totals);
        model.model.advance({.step = number});
    };
    float& of_head = model.model.parameters().weights[end_places<XMoD>::head.offset];
    model.model.initialise(3);
    of_head = std::numeric_limits<float>::infinity();
    step(8);
    of_head = 1;
    const auto mended = model.weights();
    step(9);
    CHECK(contains(refusal([&] { model.model.last_losses(totals); }), "step 8: loss or gradient is not finite"));
    CHECK(model.weights() == mended);
    step(10);
    CHECK(std::isfinite(model.model.last_losses(totals).language));
    CHECK(model.weights() != mended);
}

TEST_CASE("losses are read at some steps only, and the same as when all are") {
    const temporary_folder folder;
    const corpus whole = written(folder, "text.txt", 40);
    std::map<long long, double> every, third;
    std::vector<float> weights[2];
    for (const bool all : {true, false}) {
        training_of<XMoD> model;
        trainer run(model.model, whole, whole, training_settings{.steps = 8, .log_every = all ? 1 : 3});
        run.start();
        const std::atomic<bool> stop{false};
        run.run(
            stop, [&](const progress& now) { (all ? every : third)[now.step] = now.losses.language; },
            [](long long, const evaluation&) {});
        weights[all ? 0 : 1] = model.weights();
    }
    CHECK(every.size() == 8);
    CHECK(third.size() == 3);  // steps 3, 6 and the last
    for (const auto& [step, loss] : third) CHECK(every.at(step) == loss);
    CHECK(weights[0] == weights[1]);
}

TEST_CASE("text of a larger vocabulary than the model's is refused") {
    using Narrow = Model<dense * 1_c, Dims{.width = 16, .head_dim = 8, .heads = 2, .ffn = 24, .vocab = 100}>;
    const temporary_folder folder;
    const corpus whole = written(folder, "text.txt", 10);
    training_of<Narrow> model;
    CHECK(contains(refusal([&] { trainer(model.model, whole, whole, training_settings{}); }),
                   "vocabulary of 256, the model one of 100"));
}

TEST_CASE("expert layers: loads of both phases in the log, biases in the files, noise of a resumed run") {
    constexpr Dims sizes{
        .width = 16, .head_dim = 8, .heads = 2, .kv_heads = 1, .ffn = 24, .expert_ffn = 8, .vocab = 256};
    constexpr moe_policy noisy{.steering = true, .capacity = 1, .noisy = true};
    using M = Model<moe<4, 2, noisy> + dense, sizes>;
    const temporary_folder folder;
    const corpus train_text = written(folder, "train.txt", 40), held_out = written(folder, "held.txt", 5);
    training_settings settings{.steps = 6, .sequences = 4, .evaluate_every = 3, .save_every = 3};
    settings.log = folder.path() / "log.jsonl";
    training_of<M> whole, stopped, resumed;
    {
        trainer training(whole.model, train_text, held_out, settings);
        training.start();
        run_to_end(training, -1);
    }
    std::ifstream log(settings.log);
    int steps = 0, evaluations = 0;
    for (std::string line; std::getline(log, line);) {
        const bool step = contains(line, "\"balance_loss\"");
        ++(step ? steps : evaluations);
        CHECK(contains(line, "\"experts_of_layer\": [4]"));
        CHECK(contains(line, "\"expert_imbalance\""));
        CHECK(contains(line, "\"expert_entropy\""));
        CHECK(contains(line, "\"expert_dropped\": [0]") == !step);  // evaluation drops nothing
        CHECK(contains(line, "\"z_loss\"") == step);
    }
    CHECK((steps == 6 && evaluations == 2));

    settings.log.clear();
    settings.checkpoint = folder.path() / "half.safetensors";
    {
        trainer training(stopped.model, train_text, held_out, settings);
        training.start();
        run_to_end(training, 3);
    }
    trainer training(resumed.model, train_text, held_out, settings);
    training.resume(settings.checkpoint);
    CHECK(resumed.weights() == stopped.weights());
    run_to_end(training, 6);
    CHECK(resumed.weights() == whole.weights());
    for_each_file_tensor<M>([&](const file_tensor& t) {
        if (t.row->tensor.use == role::expert_bias) CHECK(whole.model.parameters().weights[t.offset] != 0);
    });
}

TEST_CASE("depth attention: a resumed run is the same run, and evaluations log where attention went") {
    using M = Model<moda + sparse<2>(moda) * 2_c + moda_last, small>;
    const temporary_folder folder;
    const corpus train_text = written(folder, "train.txt", 40), held_out = written(folder, "held.txt", 5);
    training_settings settings{.steps = 6, .sequences = 4, .evaluate_every = 3, .save_every = 3};
    settings.log = folder.path() / "log.jsonl";
    training_of<M> whole, stopped, resumed;
    {
        trainer training(whole.model, train_text, held_out, settings);
        training.start();
        run_to_end(training, -1);
    }
    std::ifstream log(settings.log);
    int evaluations = 0;
    for (std::string line; std::getline(log, line);) {
        if (!contains(line, "\"causal_loss\"")) continue;
        ++evaluations;
        CHECK(contains(line, "\"depth_layer\": [0,1,2,3]"));
        CHECK(contains(line, "\"depth_mass\": [0,0."));  // the first layer has no slot to read
        CHECK(contains(line, "\"depth_mass_if_even\": [0,0."));
        CHECK(contains(line, "\"depth_mass_of_head\": [0,0,0."));
    }
    CHECK(evaluations == 2);

    settings.log.clear();
    settings.checkpoint = folder.path() / "half.safetensors";
    {
        trainer training(stopped.model, train_text, held_out, settings);
        training.start();
        run_to_end(training, 3);
    }
    trainer training(resumed.model, train_text, held_out, settings);
    training.resume(settings.checkpoint);
    run_to_end(training, 6);
    CHECK(resumed.weights() == whole.weights());
    CHECK(resumed.weights() != stopped.weights());
}

TEST_CASE("a model whose routers see the future has a loss under its training rule alone") {
    constexpr Dims sizes{
        .width = 16, .head_dim = 8, .heads = 2, .kv_heads = 1, .ffn = 24, .expert_ffn = 8, .vocab = 256};
    constexpr moe_policy choosing{.choice = expert_choice::by_expert, .loss = balance::none};
    using M = Model<moe<4, 2, choosing> + dense, sizes>;
    const temporary_folder folder;
    training_of<M> run;
    run.model.initialise(1);
    const evaluation e = evaluate(run.model, written(folder, "held.txt", 5));
    CHECK(std::isnan(e.causal));
    CHECK(e.top > 4);
    REQUIRE(e.experts.size() == 1);
    CHECK(e.experts[0].imbalance() == 1);
}

TEST_CASE("a training file states its run, and loading says what this program does otherwise") {
    const temporary_folder folder;
    const auto file = folder.path() / "run.safetensors";
    training_of<XMoD> saved;
    saved.model.initialise(3);
    checkpoint files(saved.model);
    files.save_training(file, {.steps = 4,
                               .sequences = 6,
                               .kind = optimiser::muon,
                               .rate = 0.25,
                               .warmup = 0.5,
                               .decay = 0.125,
                               .clip = 2,
                               .length = 12});
    const std::string stated = safetensors_reader(file).metadata().at("sdepth.contract");
    for (const char* line : {"  sequence length: 12\n", "  sequences of a micro-batch: 2\n",
                             "  micro-batches of a step: 3\n", "  weights: f32\n", "  document mask: yes\n",
                             "  optimiser: muon, peak rate 0.25, warm-up 0.5, decay 0.125, clip 2\n"}) {
        CAPTURE(line);
        CHECK(contains(stated, line));
    }
    files.load_training(file);
    CHECK(files.differences().empty());

    training_of<XMoD, Run{.seq = 12, .batch = 3}> other;
    checkpoint others(other.model);
    others.load_model(file);
    CHECK(others.differences() == std::vector<std::string>{"sequences of a micro-batch: 2 in the file, 3 here",
                                                           "micro-batches of a step: 3 in the file, 2 here"});
}

TEST_CASE("a resumed run says in what it goes on otherwise") {
    const temporary_folder folder;
    const corpus whole = written(folder, "text.txt", 40);
    const training_settings settings{.steps = 2, .sequences = 6, .checkpoint = folder.path() / "run.safetensors"};
    training_of<XMoD> first;
    trainer began(first.model, whole, whole, settings);
    began.start();
    CHECK(began.differences().empty());
    run_to_end(began, 1);

    training_of<XMoD, Run{.seq = 12, .batch = 3}> second;
    trainer resumed(second.model, whole, whole, settings);
    resumed.resume(settings.checkpoint);
    CHECK(resumed.differences() == std::vector<std::string>{"sequences of a micro-batch: 2 in the file, 3 here",
                                                            "micro-batches of a step: 3 in the file, 2 here"});
}
