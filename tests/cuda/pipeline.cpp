// SPDX-License-Identifier: MIT
// Whole training steps on the GPU against the host: losses, masks, files, and that nothing depends on how a step is
// started.
#include "pipeline.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "sdepth/kernels/host/host.hpp"
#include "support/catch.hpp"
#include "support/temporary_folder.hpp"

namespace {

using namespace sdepth_test;

constexpr small_model every_model[] = {small_model::dense, small_model::mod, small_model::x_mod,
                                       small_model::routed_ffn, small_model::moda};

small_result run_on_host(small_model which, const small_run& what) {
    sdepth::host<float> backend;
    return with_model(which, [&]<class M>() { return run_model<M>(backend, what); });
}

std::string bytes_of(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

const std::string newline = "\\u000a";  // as files have it

// A training file: its run record, which says what the backend that saved it stores, and all else byte by byte but for
// the blanks that fill up the header.
struct file_parts {
    std::string record, rest;
};
file_parts parts_of(const std::filesystem::path& path) {
    const std::string bytes = bytes_of(path);
    std::uint64_t header = 0;
    REQUIRE(bytes.size() > sizeof header);
    std::memcpy(&header, bytes.data(), sizeof header);
    const std::size_t end = sizeof header + header, from = bytes.find(newline + "run record" + newline),
                      to = bytes.find('"', from);
    REQUIRE(to < end);
    const std::size_t last = bytes.find_last_not_of(' ', end - 1);
    return {bytes.substr(from, to - from),
            bytes.substr(sizeof header, from - sizeof header) + bytes.substr(to, last + 1 - to) + bytes.substr(end)};
}
// Whether a run record says that activations are of this type.
bool states(const std::string& record, const std::string& type) {
    return record.find(newline + "  activations: " + type + newline) != std::string::npos;
}

// Largest relative distance of two curves, infinite where a number is not finite.
double apart(const std::vector<double>& a, const std::vector<double>& b) {
    double most = a.size() == b.size() ? 0 : INFINITY;
    for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
        const double distance = a[i] == b[i] ? 0 : std::abs(a[i] - b[i]) / std::abs(b[i]);
        if (!std::isfinite(distance)) return INFINITY;
        most = std::max(most, distance);
    }
    return most;
}

// Smallest share of rows on which a layer's masks agree, over all steps.
double agreement(const small_result& a, const small_result& b) {
    double least = a.masks.size() == b.masks.size() ? 1 : 0;
    const std::size_t layers = a.masks.front().size();
    for (std::size_t layer = 0; layer < layers; ++layer) {
        double alike = 0, all = 0;
        for (std::size_t step = 0; step < a.masks.size(); ++step) {
            const auto &x = a.masks[step][layer], &y = b.masks[step][layer];
            for (std::size_t i = 0; i < x.size(); ++i) alike += x[i] == y[i] ? 1 : 0;
            all += static_cast<double>(x.size());
        }
        least = std::min(least, alike / all);
    }
    return least;
}

// Losses within a hundredth, and masks alike in 99 rows of 100 of every layer.
void check_near(const small_result& got, const small_result& want) {
    CHECK(apart(got.losses, want.losses) <= 1e-2);
    CHECK(agreement(got, want) >= .99);
    CHECK(std::abs(got.top - want.top) <= 1e-2 * want.top);
    CHECK(std::abs(got.threshold - want.threshold) <= 1e-2 * want.threshold);
}

}  // namespace

TEST_CASE("twenty steps follow the host", "[pipeline]") {
    for (const small_model which : every_model) {
        const small_result got = run_on_cuda(which, {}), want = run_on_host(which, {});
        INFO("model " << static_cast<int>(which));
        check_near(got, want);
        CHECK(want.losses.back() < want.losses.front() - .05);
        CHECK(apart(got.norms, want.norms) <= 5e-2);
        CHECK(got.shares.empty() == (which != small_model::moda));
        CHECK(apart(got.shares, want.shares) <= 1e-2);
        CHECK(got.planned == got.taken);
    }
}

TEST_CASE("evaluations execute the rows that were chosen, recorded or not", "[pipeline]") {
    for (const small_model which : {small_model::mod, small_model::x_mod, small_model::routed_ffn}) {
        INFO("model " << static_cast<int>(which));
        const small_run what{.steps = 3, .shifted = true}, direct{.steps = 3, .graphs = false, .shifted = true};
        const small_result got = run_on_cuda(which, what), again = run_on_cuda(which, direct);
        const small_result want = run_on_host(which, what);
        CHECK(got.shifted_losses == again.shifted_losses);
        CHECK(got.shifted_rates == again.shifted_rates);
        const std::vector<double>& rates = got.shifted_rates;
        CHECK((rates[2] == 0 && rates[2] < rates[3] && rates[3] <= rates[0] && rates[0] <= rates[5] && rates[4] == 1));
        CHECK((rates[5] < 1 && rates[0] == rates[6] && got.shifted_losses[0] == got.shifted_losses[6]));
        // Against what it makes of the loss whether rows are executed at all.
        const double whole = std::abs(want.shifted_losses[2] - want.shifted_losses[4]);
        CHECK(whole > 1e-3);
        for (std::size_t i = 0; i < rates.size(); ++i)
            CHECK(std::abs(got.shifted_losses[i] - want.shifted_losses[i]) <= .1 * whole);
    }
}

TEST_CASE("documents, padding, Muon and a selective replay follow the host", "[pipeline]") {
    check_near(run_on_cuda(small_model::x_mod, {.documents = true}),
               run_on_host(small_model::x_mod, {.documents = true}));
    check_near(run_on_cuda(small_model::dense, {.documents = true}),
               run_on_host(small_model::dense, {.documents = true}));
    const small_run muon{.rate = 2e-3, .kind = sdepth::optimiser::muon};
    check_near(run_on_cuda(small_model::dense, muon), run_on_host(small_model::dense, muon));
    const small_run replay{.replay = sdepth::recompute::selective};
    CHECK(run_on_cuda(small_model::x_mod, replay).losses == run_on_cuda(small_model::x_mod, {}).losses);
}

TEST_CASE("steps of several micro-batches follow the host, recorded or not", "[pipeline]") {
    for (const int micro_batches : {2, 3}) {
        INFO(micro_batches << " micro-batches");
        const small_run what{.steps = 6, .micro_batches = micro_batches};
        const small_run direct{.steps = 6, .micro_batches = micro_batches, .graphs = false};
        const small_result got = run_on_cuda(small_model::x_mod, what), other = run_on_cuda(small_model::x_mod, direct);
        const small_result want = run_on_host(small_model::x_mod, what);
        CHECK(apart(got.losses, want.losses) <= 1e-2);
        CHECK(apart(got.norms, want.norms) <= 5e-2);
        CHECK((got.losses == other.losses && got.norms == other.norms && got.masks == other.masks));
        CHECK((got.top == other.top && got.threshold == other.threshold));
        CHECK(got.losses.back() < got.losses.front());
    }
}

TEST_CASE("the same bits again, recorded or not, and after a resume", "[pipeline]") {
    const temporary_folder folder;
    for (const small_model which : every_model) {
        INFO("model " << static_cast<int>(which));
        const auto file = [&](const char* name) { return folder.path() / name; };
        const small_result once = run_on_cuda(which, {.save = file("once")});
        const small_result again = run_on_cuda(which, {.save = file("again")});
        run_on_cuda(which, {.graphs = false, .save = file("direct")});
        run_on_cuda(which, {.steps = 9, .save = file("half")});
        run_on_cuda(which, {.steps = 11, .first = 9, .load = file("half"), .save = file("resumed")});
        CHECK(once.losses == again.losses);
        CHECK(once.masks == again.masks);
        const std::string want = bytes_of(file("once"));
        CHECK(want.size() > 100'000);
        CHECK((bytes_of(file("again")) == want));
        CHECK((bytes_of(file("direct")) == want));
        CHECK((bytes_of(file("resumed")) == want));
    }
}

TEST_CASE("files of the host load on the GPU and the other way round", "[pipeline]") {
    const temporary_folder folder;
    const auto file = [&](const char* name) { return folder.path() / name; };
    for (const small_model which : every_model) {
        INFO("model " << static_cast<int>(which));
        run_on_host(which, {.steps = 5, .save = file("host")});
        run_on_cuda(which, {.steps = 0, .first = 5, .load = file("host"), .save = file("through")});
        run_on_cuda(which, {.steps = 5, .save = file("cuda")});
        run_on_host(which, {.steps = 0, .first = 5, .load = file("cuda"), .save = file("back")});
        const file_parts host = parts_of(file("host")), through = parts_of(file("through"));
        const file_parts cuda = parts_of(file("cuda")), back = parts_of(file("back"));
        CHECK((through.rest == host.rest));
        CHECK((back.rest == cuda.rest));
        CHECK((states(host.record, "f32") && states(cuda.record, "bf16")));
        CHECK(through.record == cuda.record);
        CHECK(back.record == host.record);

        const small_run on{.steps = 10, .first = 5, .load = file("host")};
        check_near(run_on_cuda(which, on), run_on_host(which, on));
    }
}
