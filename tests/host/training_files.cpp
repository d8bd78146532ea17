// SPDX-License-Identifier: MIT
// What becomes of checkpoints and logs when runs are stopped, fail, meet other files, or are asked for what cannot be.
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <limits>
#include <stdexcept>

#include "small_training.hpp"
#include "support/catch.hpp"

namespace {

using namespace small_training;

// One run on a text of `sentences`; the error's text or "accepted".
struct outcome {
    std::string message;
    long long step = 0;
    std::vector<float> weights;
};
template <Run R = pairs, class Each>
outcome run_of(const temporary_folder& folder, const training_settings& settings, bool resume, Each each,
               int sentences = 40) {
    const corpus whole = written(folder, "text.txt", sentences);
    training_of<XMoD, R> model;
    outcome out;
    out.message = refusal([&] {
        trainer training(model.model, whole, whole, settings);
        resume ? training.resume(settings.checkpoint) : training.start();
        std::atomic<bool> stop{false};
        training.run(
            stop, [&](const progress& now) { each(now, stop, model); }, [](long long, const evaluation&) {});
        out.step = training.state().step;
    });
    out.weights = model.weights();
    return out;
}
constexpr auto nothing = [](auto&&...) {};
constexpr auto until(long long step) {
    return [step](const progress& now, std::atomic<bool>& stop, auto&) { stop = now.step == step; };
}

long long stored_step(const std::filesystem::path& path) {
    return std::stoll(safetensors_reader(path).metadata().at("sdepth.step"));
}

// Rewrites a file with a change to its metadata or numbers.
void rewrite(const std::filesystem::path& path, auto change) {
    const safetensors_reader old(path);
    safetensors_metadata metadata = old.metadata();
    std::map<std::string, std::vector<float>> values;
    for (const safetensors_entry& entry : old.entries()) {
        auto& of = values[entry.name];
        of.resize((entry.end - entry.begin) / sizeof(float));
        old.read(entry.name, entry.shape, std::span<float>(of));
    }
    change(metadata, values);
    safetensors_writer out(path, old.entries(), metadata);
    for (const auto& [name, of] : values) out.write(name, std::span<const float>(of));
    out.commit();
}

}  // namespace

TEST_CASE("a step is saved before it is evaluated, and an evaluation stops when asked") {
    const temporary_folder folder;
    const corpus whole = written(folder, "text.txt", 40);
    training_of<XMoD> model;
    const training_settings settings{.steps = 2, .checkpoint = folder / "run", .log = folder / "log"};
    trainer training(model.model, whole, whole, settings);
    training.start();
    const std::atomic<bool> never{false};
    std::vector<long long> saved;
    training.run(never, nothing, [&](long long, const evaluation&) { saved.push_back(stored_step(folder / "run")); });
    CHECK(saved == std::vector<long long>{2});

    std::atomic<bool> stop{true};
    CHECK_FALSE(evaluate_unless(stop, model.model, whole));
    stop = false;
    CHECK(evaluate_unless(stop, model.model, whole)->causal == evaluate(model.model, whole).causal);
}

TEST_CASE("an evaluation that was stopped is made by the resumed run, once") {
    const temporary_folder folder;
    training_settings settings{.steps = 2, .checkpoint = folder / "run", .log = folder / "log"};
    const auto evaluations = [&] {
        int lines = 0;
        std::ifstream log(settings.log);
        for (std::string line; std::getline(log, line);) lines += contains(line, "\"causal_loss\"") ? 1 : 0;
        return lines;
    };
    CHECK(run_of(folder, settings, false, until(2)).message == "accepted");
    CHECK(stored_step(folder / "run") == 2);
    CHECK(evaluations() == 0);
    for (int again = 0; again < 2; ++again) {
        CHECK(run_of(folder, settings, true, nothing).message == "accepted");
        CHECK(evaluations() == 1);
    }
}

TEST_CASE("a checkpoint that could not be saved is an error before the first step") {
    const temporary_folder folder;
    std::filesystem::create_directory(folder / "folder");
    std::filesystem::create_symlink("/dev/null", folder / "null");
    write_bytes(folder / "book.txt", "It is a truth universally acknowledged");
    const auto refused = [&](const char* name) {
        int steps = 0;
        const training_settings settings{.steps = 2, .checkpoint = folder / name, .overwrite = true};
        const auto out = run_of(folder, settings, false, [&](auto&&...) { ++steps; });
        CHECK(steps == 0);
        return out.message;
    };
    CHECK(contains(refused("absent/run"), "absent/run"));
    CHECK(contains(refused("folder"), "no regular file"));
    CHECK(contains(refused("null"), "no regular file"));
    CHECK(contains(refused("book.txt"), "what is no checkpoint is not replaced"));
    CHECK(read_bytes(folder / "book.txt") == "It is a truth universally acknowledged");

    const pid_t child = ::fork();
    if (child == 0) {  // a disk with too little room
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit limit{50'000, 50'000};
        ::setrlimit(RLIMIT_FSIZE, &limit);
        ::_exit(contains(refused("run"), "bytes for it") ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
}

TEST_CASE("a new run replaces another's checkpoint only if told to") {
    const temporary_folder folder;
    training_settings settings{.steps = 2, .checkpoint = folder / "run"};
    CHECK(run_of(folder, settings, false, nothing).message == "accepted");
    const std::string before = read_bytes(folder / "run");
    settings.seed = 2;
    CHECK(contains(run_of(folder, settings, false, nothing).message, "holds another run"));
    CHECK(read_bytes(folder / "run") == before);
    settings.overwrite = true;
    CHECK(run_of(folder, settings, false, nothing).message == "accepted");
    CHECK(read_bytes(folder / "run") != before);
}

TEST_CASE("log and checkpoint are two files, and one run's at a time") {
    const temporary_folder folder;
    training_settings settings{.steps = 2, .checkpoint = folder / "run", .log = folder / "./run"};
    CHECK(contains(run_of(folder, settings, false, nothing).message, "as log and as checkpoint"));
    settings.log = folder / "log";
    for (const char* name : {"run", "log"}) {
        const file_lock other(folder / name);
        CHECK(contains(run_of(folder, settings, false, nothing).message, "another run is writing it"));
    }
    CHECK(run_of(folder, settings, false, nothing).message == "accepted");
}

TEST_CASE("after an error the steps that went well are saved") {
    const temporary_folder folder;
    training_settings settings{.steps = 4, .checkpoint = folder / "run"};
    const auto fail_at = [](long long step, auto problem) {
        return [=](const progress& now, auto&&...) {
            if (now.step == step) throw problem;
        };
    };
    const outcome out = run_of(folder, settings, false, fail_at(3, error("a callback failed")));
    CHECK(contains(out.message, "a callback failed; the run up to step 3 is saved in " + (folder / "run").string()));
    CHECK(stored_step(folder / "run") == 3);
    settings.overwrite = true;
    CHECK_THROWS_AS(run_of(folder, settings, false, fail_at(2, std::runtime_error("other"))), std::runtime_error);
    CHECK(stored_step(folder / "run") == 2);
    CHECK(run_of(folder, settings, true, nothing).message == "accepted");
}

TEST_CASE("a log that cannot be written does not cost the run") {
    const temporary_folder folder;
    training_settings settings{.steps = 4, .checkpoint = folder / "run", .log = folder / "log"};
    CHECK(run_of(folder, settings, false, until(1)).message == "accepted");
    const auto limit = 2 * std::filesystem::file_size(folder / "run");
    const std::string line = "{\"step\": 0, \"note\": \"";
    write_bytes(settings.log, line + std::string(limit - line.size() - 10, 'x') + "\"}\n");
    const pid_t child = ::fork();
    if (child == 0) {
        std::signal(SIGXFSZ, SIG_IGN);
        const rlimit room{limit, limit};
        ::setrlimit(RLIMIT_FSIZE, &room);
        const std::string message = run_of(folder, settings, true, nothing).message;
        ::_exit(contains(message, "cannot write a line") && contains(message, "up to step 2 is saved") ? 0 : 1);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    CHECK(status == 0);
    CHECK(stored_step(folder / "run") == 2);
}

TEST_CASE("a run that diverges keeps the last good weights, and goes on with another rate") {
    const temporary_folder folder;
    training_settings settings{.steps = 6, .log_every = 3, .checkpoint = folder / "run"};
    // An embedding so large that its square overflows, set after step 3: step 4 fails, found when losses are read.
    std::vector<float> good;
    const auto spoil = [&](const progress& now, std::atomic<bool>&, auto& model) {
        if (now.step != 3) return;
        float* weights = model.model.parameters().weights;
        for (long long i = 0; i < 16 * 256; ++i) weights[tensor_table<XMoD>.run_offsets[0] + i] = 3e38f;
        good = model.weights();
    };
    const outcome out = run_of(folder, settings, false, spoil);
    INFO(out.message);
    CHECK(contains(out.message, "not finite"));
    CHECK(contains(out.message, "the run up to step 3 is saved in " + (folder / "run").string()));
    CHECK(stored_step(folder / "run") == 3);
    CHECK(out.weights == good);

    // An earlier save stays beside it.
    settings.log_every = 1;
    settings.save_every = 2;
    settings.overwrite = true;
    const outcome later = run_of(folder, settings, false, spoil);
    CHECK(contains(later.message, "the run up to step 3 is saved in " + (folder / "run.last").string()));
    CHECK(stored_step(folder / "run") == 2);
    CHECK(stored_step(folder / "run.last") == 3);

    // The rate is part of a run unless the resume says otherwise.
    settings.steps = 9;
    settings.checkpoint = folder / "calm";
    CHECK(run_of(folder, settings, false, until(3)).message == "accepted");
    settings.rate = 1e-4;
    CHECK(contains(run_of(folder, settings, true, nothing).message, "learning rate 0.001, this run has 1e-04"));
    settings.change_rate = true;
    CHECK(run_of(folder, settings, true, until(6)).step == 6);
    settings.change_rate = false;
    CHECK(run_of(folder, settings, true, nothing).step == 9);  // the file has the new rate
}

TEST_CASE("a resume with other settings is refused, says which, and changes nothing") {
    const temporary_folder folder;
    const training_settings settings{.steps = 4, .checkpoint = folder / "run"};
    CHECK(run_of(folder, settings, false, until(2)).message == "accepted");
    const auto refused = [&](auto change) {
        training_settings other = settings;
        change(other);
        return run_of(folder, other, true, until(3)).message;
    };
    CHECK(contains(refused([](auto& s) { s.steps = 5; }), "steps 4, this run has 5"));
    CHECK(contains(refused([](auto& s) { s.rate = 2e-3; }), "learning rate 0.001, this run has 0.002"));
    CHECK(contains(refused([](auto& s) { s.warmup = .5; }), "warm-up 0.01, this run has 0.5"));
    CHECK(contains(refused([](auto& s) { s.sequences = 4; }), "sequences a step 2, this run has 4"));
    CHECK(contains(refused([](auto& s) { s.kind = optimiser::muon; }), "optimiser adamw, this run has muon"));
    CHECK(contains(refused([](auto& s) { s.seed = 7; }), "seed 1, this run has 7"));
    CHECK(contains(refused([](auto& s) { s.decay = .7; }), "decay 0.1, this run has 0.7"));
    CHECK(contains(refused([](auto& s) { s.clip = .001; }), "clip 1, this run has 0.001"));
    CHECK(contains(run_of<Run{.seq = 24, .batch = 2}>(folder, settings, true, nothing).message,
                   "tokens a sequence 12, this run has 24"));
    CHECK(contains(run_of(folder, settings, true, nothing, 39).message, "text tokens"));

    const corpus first = written(folder, "text.txt", 40);
    std::string bytes = text(40);
    bytes[100] ^= 1;
    write_bytes(folder / "other.txt", bytes);
    const corpus other = corpus::open(folder / "other.txt");
    training_of<XMoD> model;
    model.model.initialise(9);
    const auto before = model.weights();
    trainer training(model.model, other, first, settings);
    CHECK(contains(refusal([&] { training.resume(settings.checkpoint); }), "a text of digest"));
    CHECK(model.weights() == before);
    CHECK(run_of(folder, settings, true, nothing).message == "accepted");
}

TEST_CASE("a file whose numbers cannot be is refused and changes nothing") {
    const temporary_folder folder;
    const training_settings settings{.steps = 4, .checkpoint = folder / "run"};
    CHECK(run_of(folder, settings, false, until(2)).message == "accepted");
    const std::string good = read_bytes(folder / "run");
    const auto refused = [&](auto change) {
        write_bytes(folder / "run", good);
        rewrite(folder / "run", change);
        training_of<XMoD> model;
        model.model.initialise(9);
        const auto before = model.weights();
        const std::string message = refusal([&] { checkpoint(model.model).load_training(folder / "run"); });
        CHECK((model.weights() == before) == (message != "accepted"));
        return message;
    };
    const auto with = [&](const std::string& key, const std::string& value) {
        return refused([&](auto& metadata, auto&) { metadata["sdepth." + key] = value; });
    };
    CHECK(contains(with("step", "-5"), "-5 as sdepth.step, which no run has"));
    CHECK(contains(with("step", "5"), "5 as sdepth.step"));
    CHECK(contains(with("steps", "0"), "0 as sdepth.steps"));
    CHECK(contains(with("rate", "nan"), "nan as sdepth.rate"));
    CHECK(contains(with("warmup", "1.5"), "1.5 as sdepth.warmup"));
    CHECK(contains(with("decay", "-inf"), "-inf as sdepth.decay"));
    CHECK(with("step", "4") == "accepted");

    const auto spoil = [](float by) {
        return [=](auto&, auto& values) { values.at("model.layers.1.router.weight")[3] += by; };
    };
    CHECK(contains(refused(spoil(1e-6f)), "is damaged: its numbers have the checksum"));
    const auto unsummed = refused([&](auto& metadata, auto& values) {
        metadata.erase("sdepth.checksum");
        spoil(std::numeric_limits<float>::quiet_NaN())(metadata, values);
    });
    CHECK(contains(unsummed, "\"model.layers.1.router.weight\" has a number that is not finite"));

    // A single bit, anywhere in the numbers.
    for (const std::size_t back : {1u, 1000u, 40'000u}) {
        std::string flipped = good;
        flipped[flipped.size() - back] = static_cast<char>(flipped[flipped.size() - back] ^ 1);
        write_bytes(folder / "run", flipped);
        training_of<XMoD> model;
        CHECK(contains(refusal([&] { checkpoint(model.model).load_model(folder / "run"); }), "is damaged"));
    }
}

TEST_CASE("settings that cannot be are one error each") {
    const temporary_folder folder;
    constexpr double nan = std::numeric_limits<double>::quiet_NaN();
    const auto refused = [&](training_settings settings) { return run_of(folder, settings, false, nothing).message; };
    CHECK(contains(refused({.steps = 0}), "steps 0: must be at least 1"));
    CHECK(contains(refused({.sequences = 3}), "no multiple of the micro-batch of 2"));
    CHECK(contains(refused({.sequences = -2}), "no multiple"));
    CHECK(contains(refused({.sequences = (1LL << 33) + 2}), "lower the batch"));
    CHECK(contains(refused({.steps = 1LL << 60, .sequences = 64}), "lower the steps"));
    CHECK(contains(refused({.rate = nan}), "learning rate nan"));
    CHECK(contains(refused({.rate = 0}), "learning rate 0"));
    CHECK(contains(refused({.warmup = nan}), "warm-up nan"));
    CHECK(contains(refused({.decay = -1}), "decay -1"));
    CHECK(contains(refused({.clip = std::numeric_limits<double>::infinity()}), "clip inf"));
    CHECK(contains(refused({.save_every = -1}), "save_every -1"));
    CHECK(contains(refused({.evaluate_every = -1}), "evaluate_every -1"));
}

TEST_CASE("held-out text without a target is refused") {
    const temporary_folder folder;
    const corpus whole = written(folder, "text.txt", 40);
    write_bytes(folder / "one.txt", "x");
    const corpus one = corpus::open(folder / "one.txt");
    training_of<XMoD> model;
    CHECK(contains(refusal([&] { trainer(model.model, whole, one, training_settings{}); }), "none to predict"));
    CHECK(contains(refusal([&] { evaluate(model.model, one); }), "has a target"));
}
